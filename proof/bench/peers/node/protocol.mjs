// The protocol that all drivers speak (see proof/bench/peers/README.md), for those in Node: settings in the first argument, orders as lines of
// JSON on standard input, answers as lines of JSON on standard output. A driver says what its library does; what is measured, and how it
// is counted, is the same for all of them and stands here.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 5;
const MAX_JOBS = 10_000_000;

export const settings = JSON.parse(process.argv[2]);

/// Seconds since 1970, with more than milliseconds.
export const now = () => (performance.timeOrigin + performance.now()) / 1000;

/// The same input as ours, and the time that lateness is counted from.
export const job = (at) => ({ at, url: "https://example.org/a/b/c", width: 1280, height: 720, format: "png" });

/// The version of an installed package.
export const version = (name) =>
  JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

export const answer = (said) => process.stdout.write(JSON.stringify(said) + "\n");

/// Answers orders until there are no more. `driver` has: describe, setup, enqueuer(order) which gives { push(jobs), close() }, and
/// worker(seen) which gives { start(), done() }.
export async function drive(driver) {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    switch (order.order) {
      case "describe":
        answer(driver.describe());
        break;
      case "setup":
        await driver.setup();
        answer({ ready: true });
        break;
      case "enqueue":
        answer(await enqueue(driver, order));
        break;
      case "work":
        await work(driver, order);
        break;
      default:
        throw new Error(`no such order: ${line}`);
    }
  }
  process.exit(0);
}

async function enqueue(driver, order) {
  const enqueuer = await driver.enqueuer(order);
  const jobs = order.jobs ?? MAX_JOBS;
  let taken = 0;
  const began = now();
  const until = order.seconds ? began + order.seconds : Infinity;
  const client = async () => {
    while (taken < jobs && now() < until) {
      const first = taken;
      taken = Math.min(first + order.batch, jobs);
      const made = [];
      for (let number = first; number < taken; number++) {
        const due = order.due ? order.due[0] + (order.due[1] * number) / jobs : undefined;
        made.push({ due, data: job(due ?? now()) });
      }
      await enqueuer.push(made);
      if (order.pause_ms) {
        const [least, most] = order.pause_ms;
        await sleep(least + (most - least) * (((first * 2_654_435_761) % 1000) / 1000));
      }
    }
  };
  await Promise.all(Array.from({ length: order.clients }, client));
  const ended = now();
  await enqueuer.close();
  return { jobs: taken, began, ended };
}

async function work(driver, order) {
  const lateness = [];
  const seen = (data) => lateness.push((now() - data.at) * 1000);
  const worker = await driver.worker(seen, order);
  const began = now();
  const told = (await worker.start()) ?? {};
  answer({ ready: true, began, pids: [process.pid], ...told });
  if (order.until === 0) return;
  const untilDone = async () => {
    const patience = now() + order.seconds;
    for (;;) {
      const timeIsUp = now() >= patience;
      // The database is asked only when the handler has seen everything.
      if (timeIsUp || lateness.length >= order.until) {
        const done = order.until - (await worker.open(order.until));
        if (timeIsUp || done >= order.until) {
          const ended = now();
          answer({ done, ended, lateness: order.lateness ? lateness : [] });
          return;
        }
      }
      await sleep(LOOK_EVERY_MS);
    }
  };
  untilDone().catch((failed) => {
    process.stderr.write(`${failed.stack}\n`);
    process.exit(1);
  });
}
