"""pgqueuer: jobs in PostgreSQL, told by NOTIFY; a finished job's row is deleted and a line of its log is kept."""

import asyncio
import datetime
import json
import logging
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.queries import Queries
from protocol import drive, settings, versions

BATCH = 100
POLL_SECONDS = 30 if settings["figure"] == "idle" else 0.1

logging.disable(logging.WARNING)


async def pool(most):
    return await asyncpg.create_pool(settings["database"], min_size=1, max_size=most)


class Enqueuer:
    def __init__(self, connections):
        self.connections, self.queries = connections, Queries(AsyncpgPoolDriver(connections))

    async def push(self, jobs):
        payloads = [json.dumps(data).encode() for _, data in jobs]
        after = [None if due is None else datetime.timedelta(seconds=due - time.time()) for due, _ in jobs]
        if len(jobs) == 1:
            await self.queries.enqueue("noop", payloads[0], execute_after=after[0])
        else:
            await self.queries.enqueue(["noop"] * len(jobs), payloads, [0] * len(jobs), after)

    async def close(self):
        await self.connections.close()


class Worker:
    def __init__(self, queuer, connections):
        self.queuer, self.connections, self.running = queuer, connections, None

    async def start(self):
        every = datetime.timedelta(seconds=POLL_SECONDS)
        self.running = asyncio.create_task(self.queuer.qm.run(batch_size=BATCH, dequeue_timeout=every))

    async def open(self, until):
        return await self.connections.fetchval("SELECT count(*) FROM pgqueuer")


class Driver:
    def describe(self):
        return {
            "versions": versions("pgqueuer", "asyncpg"),
            "settings": f"batch_size {BATCH}, dequeue_timeout 0.1 s (idle: 30 s, its default), asyncpg pool, uvloop; one connection per client",
            "durability": "fsync and synchronous_commit on; its tables are installed as `durable` (logged)",
            "rows": "one row in pgqueuer, deleted when the job is done; lines in pgqueuer_log, kept",
            "batches": True,
        }

    async def setup(self):
        connections = await pool(1)
        await Queries(AsyncpgPoolDriver(connections)).install()
        await connections.close()

    async def enqueuer(self, order):
        return Enqueuer(await pool(order["clients"]))

    async def worker(self, seen, order):
        connections = await pool(10)
        queuer = PgQueuer(AsyncpgPoolDriver(connections))

        @queuer.entrypoint("noop")
        async def noop(job):
            seen(json.loads(job.payload))

        return Worker(queuer, await pool(1))


uvloop.run(drive(Driver()))
