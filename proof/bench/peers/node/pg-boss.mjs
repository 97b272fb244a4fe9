// pg-boss: jobs in PostgreSQL, kept as completed. Its listener wakes workers when a job is created; what is due later is found by polling,
// at most every half second.

import pg from "pg";
import { PgBoss } from "pg-boss";
import { drive, settings, version } from "./protocol.mjs";

const QUEUE = "noop";
const BATCH = 1000;
const WORKERS = 2;
const POLL_SECONDS = 0.5;
const idle = settings.figure === "idle";

const boss = (max, more) => {
  const made = new PgBoss({ connectionString: settings.database, max, ...more });
  made.on("error", (failed) => process.stderr.write(`${failed.stack}\n`));
  return made;
};

drive({
  describe: () => ({
    versions: { "pg-boss": version("pg-boss"), node: process.version },
    settings: `useListenNotify with notify on the queue, batchSize ${BATCH}, localConcurrency ${WORKERS}, burstWhenBatchFull, polls every ${POLL_SECONDS} s, its minimum (idle: its defaults, 2 s, and 30 s while it listens); one connection per client`,
    durability: "fsync and synchronous_commit on",
    rows: "one row in job, kept for 7 days",
    batches: true,
  }),

  async setup() {
    const one = boss(2, { supervise: false, schedule: false });
    await one.start();
    await one.createQueue(QUEUE, { notify: true });
    await one.stop({ graceful: false });
  },

  async enqueuer(order) {
    const one = boss(order.clients, { supervise: false, schedule: false, migrate: false });
    await one.start();
    await one.getQueue(QUEUE);
    const after = ({ due }) => (due === undefined ? {} : { startAfter: new Date(due * 1000) });
    return {
      push: (jobs) =>
        order.batch === 1
          ? one.send(QUEUE, jobs[0].data, after(jobs[0]))
          : one.insert(QUEUE, jobs.map((made) => ({ data: made.data, ...after(made) }))),
      close: () => one.stop({ graceful: false }),
    };
  },

  async worker(seen) {
    const looks = new pg.Pool({ connectionString: settings.database, max: 1 });
    const one = boss(10, { useListenNotify: true });
    await one.start();
    const polls = idle ? {} : { pollingIntervalSeconds: POLL_SECONDS, notifyPollingIntervalSeconds: POLL_SECONDS };
    return {
      start: async () => {
        const options = { batchSize: BATCH, localConcurrency: WORKERS, burstWhenBatchFull: true, ...polls };
        await one.work(QUEUE, options, async (jobs) => jobs.forEach((job) => seen(job.data)));
      },
      open: async (until) =>
        until -
        Number((await looks.query("select count(*) from pgboss.job where state = 'completed' and name = $1", [QUEUE])).rows[0].count),
    };
  },
});
