"""What is measured, defined once for everyone. A figure gets a `Place` (an empty store, and drivers on it) and gives back numbers."""

import os
import shutil
import tempfile
import time

from harness import usage
from harness.driver import Driver, Failed
from harness.peers import POSTGRES, binaries

START_SECONDS = 90
CLIENTS = 32
MANY_CLIENTS = 64
BATCH = 1000
PAUSE_MS = [30, 70]
SETTLE_SECONDS = 6
"""Sessions of PostgreSQL tell what they have counted when they end, or a little later."""
COUNTED_SECONDS = 1.5


class Place:
    """One measurement's own empty store, and the drivers on it. Everything is ended and removed with it."""

    def __init__(self, peer, command, figure, run):
        self.peer, self.command, self.run = peer, command, run
        self.directory = tempfile.mkdtemp(prefix="longhaul-peers-", dir=run.scratch)
        self.name = run.postgres.fresh() if peer.store == POSTGRES else None
        self.settings = {
            "figure": figure,
            "directory": self.directory,
            "database": self.name and run.postgres.address(self.name),
            "binary": os.path.join(binaries(), "longhaul") if peer.name.startswith("longhaul") else None,
        }
        self.drivers = []

    def __enter__(self):
        try:
            driver = self.driver()
            self.told = driver.ask("describe", "versions", START_SECONDS)
            driver.ask("setup", "ready", START_SECONDS)
            self.end(driver)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for driver in list(self.drivers):
            self.end(driver)
        if self.name:
            self.run.postgres.drop(self.name)
        shutil.rmtree(self.directory, ignore_errors=True)

    def driver(self):
        driver = Driver(self.command, self.settings, os.path.join(self.run.scratch, f"{self.peer.name.replace(' ', '-')}.log"))
        self.drivers.append(driver)
        return driver

    def end(self, driver):
        driver.end()
        self.drivers.remove(driver)

    def enqueue(self, patience, worker=None, **more):
        """By a process of its own, or by the worker's where a peer's worker hears only of its own process's jobs."""
        order = {"clients": CLIENTS, "batch": 1, **more}
        if worker and self.told.get("together"):
            return worker.ask("enqueue", "jobs", patience, **order)
        driver = self.driver()
        server = worker.ready.get("server") if worker else None
        done = driver.ask("enqueue", "jobs", patience, server=server, **order)
        self.end(driver)
        return done

    def work(self, until, seconds, lateness=False):
        worker = self.driver()
        worker.ready = worker.ask("work", "ready", START_SECONDS, until=until, seconds=seconds, lateness=lateness)
        return worker

    def fill(self, jobs):
        """Queues jobs as fast as the peer can; not measured."""
        batch = BATCH if self.told["batches"] else 1
        return self.enqueue(600, jobs=jobs, batch=batch, clients=4 if batch > 1 else CLIENTS)


def rate(jobs, began, ended):
    return jobs / (ended - began)


def percentile(values, percent):
    values = sorted(values)
    return values[-(-((len(values) - 1) * percent) // 100)]


def enqueue(place, sizes):
    done = place.enqueue(120, seconds=sizes.seconds)
    return {"jobs/s": rate(done["jobs"], done["began"], done["ended"])}


def batches(place, sizes):
    if not place.told["batches"]:
        return {"none": "it has no such call"}
    done = place.enqueue(120, seconds=sizes.seconds, batch=BATCH, clients=4)
    return {"jobs/s": rate(done["jobs"], done["began"], done["ended"])}


def drain(place, sizes):
    before = place.run.postgres.rows(place.name) if place.name else None
    place.fill(sizes.drain)
    worker = place.work(sizes.drain, sizes.patience)
    done = worker.hear("done", sizes.patience + 120)
    figure = {"jobs/s": rate(done["done"], worker.ready["began"], done["ended"]), "done": done["done"], "of": sizes.drain}
    if done["done"] >= sizes.drain:
        place.end(worker)
        figure |= written(place, before, sizes.drain)
    return figure


def written(place, before, jobs):
    if place.name:
        time.sleep(COUNTED_SECONDS)
        after = place.run.postgres.rows(place.name)
        each = {name: (after[name] - before[name]) / jobs for name in after}
        return {"written": each, "left": each["inserted"] - each["deleted"]}
    left = rows_left(place.directory)
    return {"left": left / jobs} if left is not None else {}


def rows_left(directory):
    """Of the SQLite file, if there is one."""
    import sqlite3

    for folder, _, files in os.walk(directory):
        for file in files:
            if file.endswith(".sqlite"):
                store = sqlite3.connect(os.path.join(folder, file))
                tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                return sum(store.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables)
    return None


def end_to_end(clients):
    def measure(place, sizes):
        worker = place.work(sizes.whole, sizes.patience)
        time.sleep(0.5)
        enqueued = place.enqueue(sizes.patience + 60, worker, jobs=sizes.whole, clients=clients)
        done = worker.hear("done", sizes.patience + 60)
        return {"jobs/s": rate(done["done"], enqueued["began"], done["ended"]), "done": done["done"], "of": sizes.whole}

    return measure


def latency(place, sizes):
    worker = place.work(sizes.singles, 300, lateness=True)
    time.sleep(0.5)
    place.enqueue(300, worker, jobs=sizes.singles, clients=1, pause_ms=PAUSE_MS)
    done = worker.hear("done", 300)
    return {"p50 ms": percentile(done["lateness"], 50), "p99 ms": percentile(done["lateness"], 99)}


def timers(place, sizes):
    """Enqueued while the worker runs, and before the window begins; only the window costs."""
    worker = place.work(sizes.timers, sizes.window + 240, lateness=True)
    # As long as the slowest takes to accept them one by one.
    lead = sizes.timers / 1500 + 3 if place.told["batches"] else sizes.timers / 800 + 3
    lead = max(lead, sizes.leads.get(place.peer.name, 0))
    due = [time.time() + lead, sizes.window]
    batch = BATCH if place.told["batches"] else 1
    enqueued = place.enqueue(240, worker, jobs=sizes.timers, batch=batch, clients=4 if batch > 1 else CLIENTS, due=due)
    if enqueued["ended"] > due[0]:
        took = enqueued["ended"] - enqueued["began"]
        sizes.leads[place.peer.name] = took * 1.5 + 3
        raise Failed(f"accepting {sizes.timers} timers took {took:.0f} s, longer than the {lead:.0f} s before their window")
    time.sleep(max(0.0, due[0] - time.time() - 0.1))
    before = cpu(place, worker)
    done = worker.hear("done", sizes.window + 300)
    after = cpu(place, worker)
    late = done["lateness"]
    return {
        "p50 ms": percentile(late, 50),
        "p99 ms": percentile(late, 99),
        "CPU s": after[0] - before[0],
        "server CPU s": after[1] - before[1],
        "done": done["done"],
        "of": sizes.timers,
    }


def cpu(place, worker):
    own = sum(usage.cpu_seconds(pid) for pid in worker.ready["pids"])
    return own, place.run.postgres.cpu_seconds() if place.name else 0.0


def idle(place, sizes):
    """After some work, with nothing left to do."""
    worker = place.work(0, 0)
    place.enqueue(120, worker, jobs=200, clients=4)
    time.sleep(SETTLE_SECONDS)
    pids = worker.ready["pids"]
    server = place.run.postgres.cpu_seconds() if place.name else 0.0
    before = [usage.fine_cpu_seconds(pid) for pid in pids]
    time.sleep(sizes.idle)
    # A thread that has ended meanwhile takes its time along.
    spent = max(0.0, sum(usage.fine_cpu_seconds(pid) for pid in pids) - sum(before))
    server = (place.run.postgres.cpu_seconds() - server) if place.name else 0.0
    return {
        "CPU %": 100 * spent / sizes.idle,
        "server CPU %": 100 * server / sizes.idle,
        "MiB": sum(usage.resident_mib(pid) for pid in pids),
    }


FIGURES = {
    "enqueue": enqueue,
    "batches": batches,
    "drain": drain,
    "end-to-end-32": end_to_end(CLIENTS),
    "end-to-end-64": end_to_end(MANY_CLIENTS),
    "latency": latency,
    "timers": timers,
    "idle": idle,
}
"""Those that are measured once: what they measure is long, or hardly moves."""
ONCE = ("timers", "idle")


def chosen(words):
    if not words:
        return list(FIGURES)
    found = [name for name in FIGURES if any(name.startswith(word) for word in words)]
    unknown = [word for word in words if not any(name.startswith(word) for name in FIGURES)]
    if unknown:
        raise SystemExit(f"no figure is called {unknown[0]!r}; there are {', '.join(FIGURES)}")
    return found
