#!/usr/bin/env python3
"""Stands for a tool. What it is asked for stands beside the names of the agent, or in `tool_payload`; of the former it knows nothing."""

import json
import sys


def handle(request):
    asked = request["event"]["payload"]
    asked = {**asked, **asked.get("tool_payload", {})}
    if "fail" in asked:
        return {"status": "error", "error": asked["fail"], "retry": False}
    text = f"about {asked['text']}" if "text" in asked else f"the page {asked.get('url', 'of nowhere')}"
    # Names of its own, which are also those of an agent: what is carried is not changed by them.
    payload = {"text": text, "step": "read", "tool": "page"}
    return {"status": "ok", "result": text, "events": [{"type": "content_ready", "payload": payload}]}


COMMANDS = {"handle": handle, "health": lambda request: {"status": "ok", "result": "healthy"}}

request = json.load(sys.stdin)
json.dump(COMMANDS[request["command"]](request), sys.stdout)
