#!/usr/bin/env python3
"""A worker with nothing but Python's standard library: pulls jobs of the lane "words" and counts the words of their input.

Usage: LONGHAUL_URL=http://127.0.0.1:7420 LONGHAUL_TOKEN=... examples/workers/worker.py
"""
import json
import os
import threading
import urllib.error
import urllib.request


def post(path, body, method="POST"):
    headers = {"Authorization": "Bearer " + os.environ["LONGHAUL_TOKEN"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["LONGHAUL_URL"] + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def beat(job, done):
    """Is heard of while the work goes on; a refused heartbeat ends it."""
    while not done.wait(job["heartbeat_every_seconds"]):
        try:
            if post(f"/jobs/{job['job_id']}/heartbeat", {"attempt_id": job["attempt_id"]})["cancel_requested"]:
                # Whatever was begun is stopped here; then it is true.
                post(f"/jobs/{job['job_id']}", {"attempt_id": job["attempt_id"], "state": "cancelled"}, "PATCH")
                os._exit(1)
        except urllib.error.HTTPError:
            os._exit(1)
        except OSError:
            pass  # the daemon is away: the next one may reach it


while True:
    job = post("/jobs/next", {"worker_id": f"python-{os.getpid()}", "lanes": ["words"], "wait_seconds": 30})["job"]
    if job is None:
        continue
    done = threading.Event()
    threading.Thread(target=beat, args=(job, done), daemon=True).start()
    words = len(str((job["input"] or {}).get("text", "")).split())
    done.set()
    try:
        post(f"/jobs/{job['job_id']}/complete", {"attempt_id": job["attempt_id"], "result": {"words": words}})
    except urllib.error.HTTPError as refused:
        if refused.code != 409:  # it took too long, and somebody else has it by now
            raise
