#!/usr/bin/env python3
"""Stands for an agent: one turn for each job. It remembers what it waits for, asks for a tool and is over; the answer resumes it.

Which turn a tool was asked for is the correlation of the event that asks, and comes back as `context.correlation`. With
`correlation: false` in its configuration it stands in the payload alone, as plugins of RFC-103 have it.
"""

import json
import sys
from datetime import datetime, timezone

# Whom to ask, under which name, and for what.
PLAN = [("jina-reader", "fetch", "url"), ("fabric", "critique", "text")]
STARTS = ("agentic.start", "api.trigger")


def answer(result, events=(), runs=None, logs=()):
    updates = {"state_updates": {"runs": runs}} if runs is not None else {}
    return {"status": "ok", "result": result, "events": list(events), "logs": list(logs), **updates}


def ask(request, run_id, run, runs, about):
    """Remembers what it waits for and asks for it: both, or none of them."""
    suffix, tool, name = PLAN[run["step"] - 1]
    step = {"run_id": run_id, "step": run["step"], "tool": tool}
    run.update(pending_step=run["step"], pending_tool=tool)
    payload = {
        **step,
        "tool_command": "handle",
        "tool_payload": {name: about},
        "requested_at": datetime.now(timezone.utc).isoformat(),
    }
    event = {
        "type": f"agentic.tool_request.{suffix}",
        "payload": payload,
        "dedupe_key": f"agentic:run:{run_id}:step:{run['step']}:request",
    }
    if request["config"].get("correlation", True):
        event["correlation"] = step
    return answer(f"asked for {tool}", [event], runs)


def start(request, runs):
    payload = request["event"]["payload"]
    run_id = payload.get("run_id", request["job_id"])
    if run_id in runs:
        return answer("begun already")
    runs[run_id] = run = {"status": "running", "goal": payload["goal"], "step": 1}
    return ask(request, run_id, run, runs, payload.get("url", "of nowhere"))


def resume(request, runs):
    context = request["context"]
    asked = context.get("correlation", context)
    run_id, run = asked.get("run_id"), runs.get(asked.get("run_id"))
    waits = run is not None and run["status"] == "running"
    if not waits or (asked["step"], asked["tool"]) != (run["pending_step"], run["pending_tool"]):
        told = {"level": "warn", "message": f"nobody waits for {asked}"}
        return answer("ignored", logs=[told])
    run.update(pending_step=None, pending_tool=None)
    told = request["event"]
    if told["type"] == "agentic.tool_result" and told["payload"].get("status") == "error":
        run["status"] = "escalated"
        payload = {"run_id": run_id, "reason": "tool_error", "result": told["payload"]}
        return answer("escalated", [{"type": "agent.escalated", "payload": payload}], runs)
    text = request["event"]["payload"]["text"]
    if run["step"] < len(PLAN):
        run["step"] += 1
        return ask(request, run_id, run, runs, text)
    run["status"] = "done"
    payload = {
        "run_id": run_id,
        "goal": run["goal"],
        "outcome": text,
        "steps_taken": run["step"],
        "artifacts": [],
    }
    return answer("done", [{"type": "agent.completed", "payload": payload}], runs)


def handle(request):
    runs = request["state"].get("runs", {})
    begins = request["event"]["type"] in STARTS
    return start(request, runs) if begins else resume(request, runs)


COMMANDS = {"handle": handle, "health": lambda request: {"status": "ok", "result": "healthy"}}

request = json.load(sys.stdin)
json.dump(COMMANDS[request["command"]](request), sys.stdout)
