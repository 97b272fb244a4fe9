"""What the generator must know about longhaul: ids that are there, waits that are cut short, and which refusals are about more than form.

`LONGHAUL_OPENAPI_SEEDS` is a JSON object: for each path, the values of its parameters that name something that is there.
"""

import atexit
import collections
import json
import os
import zlib

import schemathesis
from schemathesis.core.parameters import ParameterLocation

REFUSED = collections.Counter()
SEEDS = json.loads(os.environ.get("LONGHAUL_OPENAPI_SEEDS", "{}"))

# Refusals with 400 or 422 of requests that fit the document, and why no schema can say them. By code:
CODES = {
    "async_only": "the operator says how a capability may be called",
    "attempt_required": "only a job that was dispatched has attempts",
    "deadline_elapsed": "the deadline has passed",
    "sync_only": "the operator says how a capability may be called",
    "terminal": "the job is over",
    "too_deep": "no schema counts how deep JSON is nested",
}
# By the mistake and the field, where fields are named; each of them must be here:
FIELDS = {
    ("invalid_policy", "body", "retry"): "a first wait that is longer than the longest: two fields are compared",
    ("invalid_value", "body", "executor"): "the host has no such executor",
    ("value_error", "query", "peer_id"): "a token that speaks for a peer need not name it",
    ("literal_error", "body", "backend"): "the host has no such backend",
    ("schema", "body", "input"): "every executor has a schema of its own for its input",
    ("continuity_unavailable", "body", "continuity"): "a session lasts only with a process that lasts: two fields are compared",
    ("invalid_value", "body", "state"): "only a job is settled in a state: the path names what is settled",
    ("invalid_value", "body", "work_order_id"): "only an event names the workorder that was made of it",
}
# By the diagnostics of a directive that was rejected and has its record; each of them must be here:
DIRECTIVES = {
    "action-not-allowlisted": "the host has no such action",
    "async-only": "the operator says how an action may be called",
    "deadline-elapsed": "the deadline has passed",
    "parameters-schema-invalid": "every action has a schema of its own for its parameters",
    "sync-only": "the operator says how an action may be called",
}
# By what is said, where there is no code (Ductile's own form):
WORDS = {
    "no plugin is named": "the host has no such plugin",
    "has no command": "the plugin has no such command",
}


@schemathesis.hook
def before_call(context, case, kwargs):
    name_what_is_there(case)
    write_plain_integers(case)
    cut_waits_short(case)
    avoid_the_obvious(case)


def name_what_is_there(case):
    """Half of the requests name something that is there: the other half would only ever be told 404."""
    meta = case.meta
    known = SEEDS.get(case.path)
    if not known or (meta is not None and meta.is_negative_at(ParameterLocation.PATH)):
        return
    drawn = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode())
    if drawn % 2 == 0:
        case.path_parameters = dict(known[drawn // 2 % len(known)])


def write_plain_integers(case):
    """For JSON Schema 3.0 is an integer. The daemon refuses it where it asks for one, and the document says so."""
    is_good = case.meta is not None and case.meta.generation.mode.is_positive
    if is_good and isinstance(case.body, dict):
        plain = plain_integers(case.body)
        if repr(plain) != repr(case.body):
            case.body = plain


def plain_integers(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: plain_integers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain_integers(member) for member in value]
    return value


def cut_waits_short(case):
    """Nobody waits for something that does not come."""
    if isinstance(case.body, dict):
        for field in ("wait_seconds", "timeout_seconds"):
            if isinstance(case.body.get(field), int) and case.path != "/jobs":
                case.body = {**case.body, field: 0}
        if case.path == "/jobs/next" and case.body.get("wait_seconds", None) is None:
            case.body = {**case.body, "wait_seconds": 0}
        if case.path == "/asks/{id}/wait" and case.body.get("timeout_seconds", None) is None:
            case.body = {**case.body, "timeout_seconds": 0}
    if case.query and str(case.query.get("wait_seconds", "")).isdigit():
        case.query = {**case.query, "wait_seconds": 0}


def avoid_the_obvious(case):
    """Most of the good requests would be refused for their deadline, their backend or two keys, and nothing else of them be looked at."""
    if case.meta is None or not case.meta.generation.mode.is_positive or not isinstance(case.body, dict):
        return
    drawn = zlib.crc32(repr(case.body).encode())
    if drawn % 8 == 0:
        return
    better = {}
    for field in ("deadline_at", "expires_at"):
        if isinstance(case.body.get(field), str):
            better[field] = "2100-01-01T00:00:00Z"
    if isinstance(case.body.get("backend"), str) and case.path in ("/jobs", "/work"):
        better["backend"] = "codex"
    for field in ("idempotency_key", "idempotency/key"):
        if isinstance(case.body.get(field), str):
            case.headers = {name: value for name, value in (case.headers or {}).items() if name != "Idempotency-Key"}
    case.body = {**case.body, **better}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether a failure counts: a refusal of a good request does unless it is about more than its form."""
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    try:
        reason = more_than_form(response.json(), case.body)
    except ValueError:
        return True
    REFUSED[reason] += 1
    return reason is None


def more_than_form(refusal, sent):
    """Why a good request with the body `sent` was refused, if nothing of that is about its form."""
    if refusal.get("schema") == "sensorium-directive-result.v1":
        return common(DIRECTIVES.get(found.get("code")) for found in refusal.get("diagnostics", []))
    if refusal.get("errors"):
        return common(excuse(error, sent) for error in refusal["errors"])
    if refusal.get("code") == "invalid_idempotency_key":
        return "two different idempotency keys, in the header and in the body"
    if refusal.get("code") in CODES:
        return CODES[refusal["code"]]
    return next((reason for words, reason in WORDS.items() if words in refusal.get("error", "")), None)


def excuse(error, sent):
    """Why one field was refused, if not for its form."""
    kind, place = error.get("type"), tuple(error.get("loc", [])[:2])
    if kind == "too_large" and place[:1] == ("body",) and is_any_json(sent, place[1:]):
        return "no schema counts the bytes of an object or an array"
    return FIELDS.get((kind, *place)) or CODES.get(kind)


def is_any_json(sent, field):
    """Whether the member `field` of a body, or of its `request`, is an object or an array; a schema limits a string."""
    if not isinstance(sent, dict) or len(field) != 1:
        return False
    inner = sent.get("request")
    places = [sent, inner if isinstance(inner, dict) else {}]
    return any(isinstance(place.get(field[0]), dict | list) for place in places)


def common(reasons):
    """All reasons in one, if there is a reason for each."""
    reasons = list(reasons)
    return "; ".join(sorted(set(reasons))) if reasons and None not in reasons else None


@atexit.register
def tell():
    told = ", ".join(f"{reason} ({count})" for reason, count in REFUSED.most_common() if reason)
    if told:
        print(f"Refused for what no schema can say: {told}")
