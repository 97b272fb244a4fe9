#!/usr/bin/env python3
"""Counts words. Its state is the number of words so far and the time of the last text in nanoseconds, which has 19 digits."""

import json
import sys
import time


def handle(request):
    text = request["event"]["payload"].get("text")
    if not isinstance(text, str):
        # Another attempt would be given the same text.
        return {"status": "error", "error": "the payload needs a text", "retry": False}
    words = len(text.split())
    total = request["state"].get("words", 0) + words
    return {
        "status": "ok",
        "result": f"{words} {request['config']['unit']}, {total} in all",
        "state_updates": {"words": total, "counted_at_ns": time.time_ns()},
        "events": [{"type": "tally.counted", "payload": {"words": words}, "dedupe_key": f"tally:{total}"}],
    }


def poll(request):
    state = request["state"]
    counted = f"{state.get('words', 0)} {request['config']['unit']} so far"
    return {"status": "ok", "result": counted, "events": [{"type": "tally.told", "payload": state}]}


COMMANDS = {"handle": handle, "poll": poll, "health": lambda request: {"status": "ok", "result": "healthy"}}

request = json.load(sys.stdin)
json.dump(COMMANDS[request["command"]](request), sys.stdout)
