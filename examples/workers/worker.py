#!/usr/bin/env python3
"""A worker with nothing but Python's standard library: pulls jobs of the lane "words" and counts the words of their input.

With "seconds" in the input it takes that long, so that a cancel can be tried.
Usage: LONGHAUL_URL=http://127.0.0.1:7420 LONGHAUL_TOKEN=... examples/workers/worker.py
"""
import concurrent.futures
import http.client
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

PAUSE_SECONDS = 2


def send(path, body, method="POST"):
    """The answer, however long the daemon is away; None if the daemon refuses."""
    headers = {"Authorization": "Bearer " + os.environ["LONGHAUL_TOKEN"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["LONGHAUL_URL"] + path, json.dumps(body).encode(), headers, method=method)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except (OSError, http.client.HTTPException, ValueError) as failure:
            print(f"{path}: {failure}", file=sys.stderr)
            if isinstance(failure, urllib.error.HTTPError) and failure.code < 500:
                return None
        time.sleep(PAUSE_SECONDS)


def count_words(job_input, stop):
    """The work; ends early when it is to stop."""
    stop.wait(job_input.get("seconds", 0))
    return len(str(job_input.get("text", "")).split())


def attempt(job, pool):
    path, report = f"/jobs/{job['job_id']}", {"attempt_id": job["attempt_id"]}
    stop = threading.Event()
    work = pool.submit(count_words, job["input"] or {}, stop)
    while not concurrent.futures.wait([work], job["heartbeat_every_seconds"]).done:
        heard = send(path + "/heartbeat", report)
        # A refused heartbeat means that somebody else has the job, or that it is over.
        if heard is None or heard["cancel_requested"]:
            stop.set()
            concurrent.futures.wait([work])
            if heard is not None:
                send(path, {**report, "state": "cancelled"}, "PATCH")
            return
    # Refused with 409 if it took too long, and somebody else has the job by now.
    if work.exception() is None:
        send(path + "/complete", {**report, "result": {"words": work.result()}})
    else:
        send(path + "/fail", {**report, "reason": "bad_input", "error": {"message": str(work.exception())}})


with concurrent.futures.ThreadPoolExecutor(1) as pool:
    while True:
        pulled = send("/jobs/next", {"worker_id": f"python-{os.getpid()}", "lanes": ["words"], "wait_seconds": 30})
        if pulled is None:
            time.sleep(PAUSE_SECONDS)
        elif pulled["job"] is not None:
            attempt(pulled["job"], pool)
