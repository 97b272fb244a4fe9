// Restate: a server of its own (from npm) that calls a service of ours over HTTP/2. A no-op job is a one-way invocation of a handler
// without steps. The server is a child of whoever needs it and keeps everything in the directory of the measurement.
//
// Nothing is queued there without being tried: jobs that shall wait (enqueue, drain) are sent with a delay.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createServer as createSecureless } from "node:http2";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import * as restate from "@restatedev/restate-sdk";
import { drive, now, settings, version } from "./protocol.mjs";

const HOST = "127.0.0.1";
const AN_HOUR = 3600;
/// Jobs per second that are surely sent before those of a drain are due.
const SURELY = 800;
const ports = `${settings.directory}/ports.json`;
const drainAt = `${settings.directory}/drain-at.json`;

const binary = () => {
  const here = createRequire(import.meta.url);
  return here.resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`);
};

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, HOST, () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

async function chosen() {
  if (!existsSync(ports)) {
    const [ingress, admin, node, service] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    writeFileSync(ports, JSON.stringify({ ingress, admin, node, service }));
  }
  return JSON.parse(readFileSync(ports));
}

async function startServer() {
  const at = await chosen();
  const child = spawn(binary(), ["--no-logo", "--base-dir", `${settings.directory}/restate`, "--node-name", "peer", "--listen-mode", "tcp"], {
    cwd: settings.directory,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      RESTATE_LOG_FILTER: "error",
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_BIND_ADDRESS: `${HOST}:${at.node}`,
      RESTATE_INGRESS__BIND_ADDRESS: `${HOST}:${at.ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `${HOST}:${at.admin}`,
    },
  });
  process.on("exit", () => child.kill("SIGKILL"));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const patience = now() + 60;
  for (;;) {
    const healthy = await Promise.all([at.ingress, at.admin].map((port) => call(port, "GET", port === at.ingress ? "/restate/health" : "/health").catch(() => null)));
    if (healthy.every((one) => one !== null)) break;
    if (now() > patience) throw new Error("the Restate server did not become ready");
    await sleep(20);
  }
  return {
    at,
    pid: child.pid,
    stop: async () => {
      child.kill("SIGTERM");
      await Promise.race([ended, sleep(20_000)]);
      child.kill("SIGKILL");
    },
  };
}

function startService(port, seen) {
  const noop = restate.service({ name: "Peer", handlers: { noop: async (_, data) => void seen(data) } });
  const quiet = () => {};
  const handler = restate.createEndpointHandler({ services: [noop], logger: quiet });
  return new Promise((resolve) => {
    const server = createSecureless(handler);
    server.listen(port, HOST, () => resolve(server));
  });
}

const agent = new Agent({ keepAlive: true, maxSockets: 128 });

function call(port, method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", accept: "application/json" };
    const asked = request({ host: HOST, port, method, path, agent, headers }, (reply) => {
      const chunks = [];
      reply.on("data", (chunk) => chunks.push(chunk));
      reply.on("error", reject);
      reply.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (reply.statusCode >= 300) reject(new Error(`${method} ${path} was answered ${reply.statusCode}: ${text}`));
        else resolve(text);
      });
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

drive({
  describe: () => ({
    versions: {
      "restate-server": version("@restatedev/restate-server"),
      "@restatedev/restate-sdk": version("@restatedev/restate-sdk"),
      node: process.version,
    },
    settings: "one node as it comes (24 partitions, replication 1, journals kept for a day); one-way sends over kept HTTP connections; a drain is a send with a delay to one moment, because it tries everything at once",
    durability: "its log is written with fsync (its default)",
    rows: "several log records and RocksDB keys for each invocation, journals kept for a day",
    batches: false,
  }),

  async setup() {
    const server = await startServer();
    const service = await startService(server.at.service, () => {});
    await call(server.at.admin, "POST", "/deployments", { uri: `http://${HOST}:${server.at.service}`, use_http_11: false });
    service.close();
    await server.stop();
  },

  async enqueuer(order) {
    const own = order.server ? undefined : await startServer();
    const { ingress } = own ? own.at : order.server;
    let waits;
    if (own && settings.figure === "drain") {
      waits = now() + order.jobs / SURELY + 5;
      writeFileSync(drainAt, JSON.stringify(waits));
    } else if (own) {
      waits = now() + AN_HOUR;
    }
    return {
      push: ([{ due, data }]) => {
        const at = due ?? waits;
        const delay = at === undefined ? "" : `?delay=${Math.max(0, Math.round((at - now()) * 1000))}ms`;
        return call(ingress, "POST", `/Peer/noop/send${delay}`, data);
      },
      close: async () => {
        agent.destroy();
        await own?.stop();
      },
    };
  },

  async worker(seen) {
    const { service } = await chosen();
    await startService(service, seen);
    let server;
    return {
      start: async () => {
        server = await startServer();
        const told = { pids: [process.pid, server.pid], server: server.at };
        if (!existsSync(drainAt)) return told;
        const began = JSON.parse(readFileSync(drainAt));
        if (began < now()) throw new Error("the jobs of the drain were due before the worker was ready");
        return { ...told, began };
      },
      open: async (until) => {
        const query = "select count(*) as done from sys_invocation where status = 'completed'";
        return until - JSON.parse(await call(server.at.admin, "POST", "/query", { query })).rows[0].done;
      },
    };
  },
});
