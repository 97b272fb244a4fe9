"""The protocol that all drivers speak (see proof/bench/peers/README.md), for those in Python: settings in the first argument, orders as lines
of JSON on standard input, answers as lines of JSON on standard output. A driver says what its library does; what is measured, and how
it is counted, is the same for all of them and stands here."""

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version

LOOK_EVERY = 0.005
MAX_JOBS = 10_000_000

settings = json.loads(sys.argv[1])


def job(at):
    """The same input as ours, and the time that lateness is counted from."""
    return {"at": at, "url": "https://example.org/a/b/c", "width": 1280, "height": 720, "format": "png"}


def versions(*names):
    return {name: version(name) for name in names} | {"python": sys.version.split()[0]}


def answer(said):
    print(json.dumps(said), flush=True)


async def drive(driver):
    """Answers orders until there are no more. `driver` has: describe(), setup(), enqueuer(order) which gives an object with push(jobs)
    and close(), and worker(seen, order) which gives one with start() and open(until)."""
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    waiting = None
    while line := await orders.readline():
        order = json.loads(line)
        match order["order"]:
            case "describe":
                answer(driver.describe())
            case "setup":
                await driver.setup()
                answer({"ready": True})
            case "enqueue":
                answer(await enqueue(driver, order))
            case "work":
                waiting = await work(driver, order)
    if waiting:
        waiting.cancel()
    os._exit(0)


async def enqueue(driver, order):
    enqueuer = await driver.enqueuer(order)
    jobs, batch, due = order.get("jobs") or MAX_JOBS, order["batch"], order.get("due")
    taken, began = 0, time.time()
    until = began + order["seconds"] if order.get("seconds") else float("inf")

    async def client():
        nonlocal taken
        while taken < jobs and time.time() < until:
            first, taken = taken, min(taken + batch, jobs)
            dues = [due[0] + due[1] * number / jobs if due else None for number in range(first, taken)]
            await enqueuer.push([(at, job(at or time.time())) for at in dues])
            if pause := order.get("pause_ms"):
                share = (first * 2_654_435_761 % 1000) / 1000
                await asyncio.sleep((pause[0] + (pause[1] - pause[0]) * share) / 1000)

    await asyncio.gather(*(client() for _ in range(order["clients"])))
    ended = time.time()
    await enqueuer.close()
    return {"jobs": taken, "began": began, "ended": ended}


async def work(driver, order):
    lateness = []
    worker = await driver.worker(lambda data: lateness.append((time.time() - data["at"]) * 1000), order)
    began = time.time()
    await worker.start()
    answer({"ready": True, "began": began, "pids": [os.getpid()]})
    if order["until"] == 0:
        return None

    async def until_done():
        patience = time.time() + order["seconds"]
        while True:
            time_is_up = time.time() >= patience
            # The database is asked only when the handler has seen everything.
            if time_is_up or len(lateness) >= order["until"]:
                done = order["until"] - await worker.open(order["until"])
                if time_is_up or done >= order["until"]:
                    answer({"done": done, "ended": time.time(), "lateness": lateness if order["lateness"] else []})
                    return
            await asyncio.sleep(LOOK_EVERY)

    return asyncio.create_task(until_done())
