// graphile-worker: jobs in PostgreSQL, told by NOTIFY, finished jobs are deleted. The settings for throughput are those of its page on
// performance: a local queue, and completions in batches.

import pg from "pg";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { drive, settings, version } from "./protocol.mjs";

const TASK = "noop";
const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
const POLL_MS = settings.figure === "idle" ? 2000 : 100;
const logger = new Logger(() => () => {});

const pool = (max) => new pg.Pool({ connectionString: settings.database, max });

drive({
  describe: () => ({
    versions: { "graphile-worker": version("graphile-worker"), node: process.version },
    settings: `concurrentJobs ${CONCURRENCY}, maxPoolSize ${CONCURRENCY + 1}, localQueue.size ${LOCAL_QUEUE}, completeJobBatchDelay 0, pollInterval 100 ms (idle: 2 s, its default); one connection per client`,
    durability: "fsync and synchronous_commit on",
    rows: "one row in _private_jobs, deleted when the job is done",
    batches: true,
  }),

  async setup() {
    const utils = await makeWorkerUtils({ connectionString: settings.database, logger });
    await utils.migrate();
    await utils.release();
  },

  async enqueuer(order) {
    const pgPool = pool(order.clients);
    const utils = await makeWorkerUtils({ pgPool, logger });
    const spec = ({ due }) => (due === undefined ? {} : { runAt: new Date(due * 1000) });
    // The first call learns what the database is; it is not measured.
    await utils.withPgClient((client) => client.query("select 1"));
    return {
      push: (jobs) =>
        order.batch === 1
          ? utils.addJob(TASK, jobs[0].data, spec(jobs[0]))
          : utils.addJobs(jobs.map((made) => ({ identifier: TASK, payload: made.data, ...spec(made) }))),
      close: async () => {
        await utils.release();
        await pgPool.end();
      },
    };
  },

  async worker(seen) {
    const looks = pool(1);
    return {
      start: async () => {
        await run({
          taskList: { [TASK]: async (payload) => void seen(payload) },
          preset: {
            worker: {
              connectionString: settings.database,
              concurrentJobs: CONCURRENCY,
              maxPoolSize: CONCURRENCY + 1,
              localQueue: { size: LOCAL_QUEUE },
              completeJobBatchDelay: 0,
              failJobBatchDelay: 0,
              pollInterval: POLL_MS,
              logger,
            },
          },
          noHandleSignals: true,
        });
      },
      open: async () =>
        Number((await looks.query("select count(*) from graphile_worker._private_jobs")).rows[0].count),
    };
  },
});
