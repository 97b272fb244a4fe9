"""procrastinate: jobs in PostgreSQL, told by NOTIFY, kept when they are done, with an event row for each step."""

import asyncio
import datetime
import logging

import procrastinate
import psycopg
import uvloop
from protocol import drive, settings, versions

CONCURRENCY = 32
POLL_SECONDS = 5.0 if settings["figure"] == "idle" else 0.1

logging.disable(logging.WARNING)


def application(most):
    connector = procrastinate.PsycopgConnector(conninfo=settings["database"], min_size=1, max_size=most)
    return procrastinate.App(connector=connector)


class Enqueuer:
    def __init__(self, app, task):
        self.app, self.task = app, task

    async def push(self, jobs):
        if len(jobs) == 1:
            [(due, data)] = jobs
            await self.deferrer(due).defer_async(data=data)
        elif jobs[0][0] is None:
            await self.task.batch_defer_async(*({"data": data} for _, data in jobs))
        else:
            made = [self.deferrer(due).make_new_job(data=data) for due, data in jobs]
            await self.app.job_manager.batch_defer_jobs_async(made)

    def deferrer(self, due):
        if due is None:
            return self.task
        return self.task.configure(schedule_at=datetime.datetime.fromtimestamp(due, datetime.timezone.utc))

    async def close(self):
        await self.app.close_async()


class Worker:
    def __init__(self, app, looks):
        self.app, self.looks, self.running = app, looks, None

    async def start(self):
        self.running = asyncio.create_task(
            self.app.run_worker_async(
                concurrency=CONCURRENCY,
                fetch_job_polling_interval=POLL_SECONDS,
                listen_notify=True,
                install_signal_handlers=False,
            )
        )

    async def open(self, until):
        rows = await self.looks.execute("SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'")
        return until - (await rows.fetchone())[0]


class Driver:
    def describe(self):
        return {
            "versions": versions("procrastinate", "psycopg"),
            "settings": f"concurrency {CONCURRENCY}, listen_notify, fetch_job_polling_interval 0.1 s (idle: 5 s, its default), uvloop, "
            "psycopg's C part; one connection per client; batches through batch_defer",
            "durability": "fsync and synchronous_commit on",
            "rows": "one row in procrastinate_jobs and one event for each step, kept",
            "batches": True,
        }

    async def setup(self):
        app = application(2)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def enqueuer(self, order):
        app = application(order["clients"])
        task = app.task(name="noop")(lambda data: None)
        await app.open_async()
        return Enqueuer(app, task)

    async def worker(self, seen, order):
        app = application(CONCURRENCY + 2)

        @app.task(name="noop")
        async def noop(data):
            seen(data)

        await app.open_async()
        looks = await psycopg.AsyncConnection.connect(settings["database"], autocommit=True)
        return Worker(app, looks)


uvloop.run(drive(Driver()))
