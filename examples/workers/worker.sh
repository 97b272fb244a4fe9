#!/usr/bin/env bash
# A worker with nothing but bash and curl: pulls jobs of the lane "words" and counts the words of the "text" in their input.
# Usage: LONGHAUL_URL=http://127.0.0.1:7420 LONGHAUL_TOKEN=... examples/workers/worker.sh
set -euo pipefail
post() { curl -sS --fail-with-body -H "Authorization: Bearer $LONGHAUL_TOKEN" -H 'Content-Type: application/json' -d "$2" "$LONGHAUL_URL$1"; }
# The first value of a key whose values have no quotes in them: ids and numbers.
field() { grep -oE "\"$1\":\"?[^\",}]*" <<<"$answer" | head -n 1 | sed 's/.*:"\{0,1\}//'; }

while answer=$(post /jobs/next "{\"worker_id\": \"bash-$$\", \"lanes\": [\"words\"], \"wait_seconds\": 30}"); do
    [ "$answer" != '{"job":null}' ] || continue
    job=$(field job_id) attempt=$(field attempt_id) every=$(field heartbeat_every_seconds)
    # Be heard of while the work goes on, and only then; a refused heartbeat ends it, and so does a cancel.
    (while sleep "$every" && kill -0 $$; do
        answer=$(post "/jobs/$job/heartbeat" "{\"attempt_id\": \"$attempt\"}") || kill $$
        [ "$(field cancel_requested)" != true ] || kill $$
    done) &
    text=$(grep -oE '"text":"[^"]*"' <<<"$answer" | head -n 1 | cut -d '"' -f 4)
    words=$(wc -w <<<"$text")
    kill $! 2>/dev/null || true
    # Refused with 409 if it took too long, and somebody else has it by now.
    post "/jobs/$job/complete" "{\"attempt_id\": \"$attempt\", \"result\": {\"words\": $words}}" >/dev/null || true
done
exit 1 # the daemon is away, or does not want us
