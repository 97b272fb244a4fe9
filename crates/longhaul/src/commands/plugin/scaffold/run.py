#!/usr/bin/env python3
"""One JSON object comes on standard input, one goes to standard output. Whatever else is to be said goes to standard error."""

import json
import sys


def answer(request):
    if request["command"] == "health":
        return {"status": "ok", "result": "healthy"}
    event = request.get("event") or {}
    payload = event.get("payload") or request.get("payload") or {}
    name = payload.get("name", "world")
    count = request["state"].get("count", 0) + 1
    return {
        "status": "ok",
        "result": f"hello {name}, number {count}",
        "state_updates": {"count": count},
        "events": [{"type": "greeted", "payload": {"name": name, "count": count}}],
        "logs": [{"level": "info", "message": "said hello"}],
    }


json.dump(answer(json.load(sys.stdin)), sys.stdout)
