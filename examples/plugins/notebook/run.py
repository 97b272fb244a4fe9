#!/usr/bin/env python3
"""Keeps notes. The workspace holds what the step before has left: a copy, so appending in place changes nobody else's notes.

What is large goes into a file below `artifacts/`, and the event carries its path.
"""

import json
import sys
from pathlib import Path


def handle(request):
    payload = request["event"]["payload"]
    workspace = Path(request["workspace_dir"])
    if payload.get("line"):
        with (workspace / "notes.md").open("a") as notes:
            notes.write(payload["line"] + "\n")
    if not payload.get("report"):
        return {"status": "ok", "result": "noted", "events": []}
    # After a split, what each branch left is beside what was there before.
    notes = sorted(workspace.glob("branches/*/notes.md")) or [workspace / "notes.md"]
    report = workspace / "artifacts" / "report.md"
    report.parent.mkdir(exist_ok=True)
    report.write_text("".join(f"## {note.parent.name}\n{note.read_text()}" for note in notes))
    payload = {"artifact_path": "artifacts/report.md", "bytes": report.stat().st_size}
    return {
        "status": "ok",
        "result": f"a report of {len(notes)} notebooks",
        "events": [{"type": "notebook.reported", "payload": payload}],
    }


COMMANDS = {"handle": handle, "health": lambda request: {"status": "ok", "result": "healthy"}}

request = json.load(sys.stdin)
json.dump(COMMANDS[request["command"]](request), sys.stdout)
