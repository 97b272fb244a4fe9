// DBOS: workflows in PostgreSQL. A no-op job is a workflow without steps on a queue; the queue is polled.

import pg from "pg";
import { DBOS, DBOSClient } from "@dbos-inc/dbos-sdk";
import { drive, settings, version } from "./protocol.mjs";

const QUEUE = "noop";
const POLL_MS = settings.figure === "idle" ? 1000 : 100;
const CONCURRENCY = 1000;
const POOL = 20;
const quiet = { info() {}, debug() {}, warn() {}, error: (text) => process.stderr.write(`${text}\n`) };

/// Seconds that are whole milliseconds when they are multiplied by a thousand again: others are refused.
function wholeMilliseconds(left) {
  let milliseconds = Math.max(0, Math.ceil(left));
  while ((milliseconds / 1000) * 1000 !== milliseconds) milliseconds++;
  return milliseconds / 1000;
}

const configure = () =>
  DBOS.setConfig({
    name: "peer",
    systemDatabaseUrl: settings.database,
    systemDatabasePoolSize: POOL,
    applicationVersion: "1",
    logger: quiet,
  });

drive({
  describe: () => ({
    versions: { "@dbos-inc/dbos-sdk": version("@dbos-inc/dbos-sdk"), node: process.version },
    settings: `one queue, workerConcurrency ${CONCURRENCY}, minPollingIntervalMs 100 (idle: 1000, its default), pool of ${POOL}; clients through DBOSClient with one connection each, batches through enqueueInTransaction in one transaction`,
    durability: "fsync and synchronous_commit on",
    rows: "three rows for a workflow without steps, workflow_status among them; kept",
    batches: true,
  }),

  async setup() {
    configure();
    DBOS.registerWorkflow(async () => {}, { name: "noop" });
    await DBOS.launch();
    await DBOS.registerQueue(QUEUE, { workerConcurrency: CONCURRENCY, minPollingIntervalMs: POLL_MS });
    await DBOS.shutdown();
  },

  async enqueuer(order) {
    const client = await DBOSClient.create({
      systemDatabaseUrl: settings.database,
      systemDatabasePoolSize: order.clients,
      applicationName: "peer",
      logger: quiet,
    });
    const pool = new pg.Pool({ connectionString: settings.database, max: order.clients });
    const options = ({ due }) => ({
      queueName: QUEUE,
      workflowName: "noop",
      ...(due === undefined ? {} : { delaySeconds: wholeMilliseconds(due * 1000 - Date.now()) }),
    });
    const inOneTransaction = async (jobs) => {
      const connection = await pool.connect();
      try {
        await connection.query("begin");
        for (const made of jobs) await client.enqueueInTransaction(connection, options(made), made.data);
        await connection.query("commit");
      } finally {
        connection.release();
      }
    };
    return {
      push: (jobs) => (order.batch === 1 ? client.enqueue(options(jobs[0]), jobs[0].data) : inOneTransaction(jobs)),
      close: async () => {
        await client.destroy();
        await pool.end();
      },
    };
  },

  async worker(seen) {
    const looks = new pg.Pool({ connectionString: settings.database, max: 1 });
    configure();
    DBOS.registerWorkflow(async (data) => void seen(data), { name: "noop" });
    return {
      start: async () => {
        await DBOS.launch();
        await DBOS.registerQueue(QUEUE, { workerConcurrency: CONCURRENCY, minPollingIntervalMs: POLL_MS });
      },
      open: async (until) =>
        until - Number((await looks.query("select count(*) from dbos.workflow_status where status = 'SUCCESS'")).rows[0].count),
    };
  },
});
