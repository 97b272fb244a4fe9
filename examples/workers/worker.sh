#!/usr/bin/env bash
# A worker with nothing but bash and curl: pulls jobs of the lane "words" and counts the words of the "text" in their input.
# Texts without quotes and backslashes: bash has no JSON. With "seconds" in the input it takes that long, so that a cancel can be tried.
# Usage: LONGHAUL_URL=http://127.0.0.1:7420 LONGHAUL_TOKEN=... examples/workers/worker.sh
set -euo pipefail
pause=2
# Sends a body, again and again while the daemon is away; sets $answer. Fails if the daemon refuses.
send() {
    until answer=$(curl -sS --fail-with-body --max-time 90 -H "Authorization: Bearer $LONGHAUL_TOKEN" -H 'Content-Type: application/json' \
        -d "$2" "${@:3}" "$LONGHAUL_URL$1" -w '\n%{http_code}'); do
        case ${answer##*$'\n'} in 4*) echo "$1: $answer" >&2 && return 1 ;; esac
        sleep "$pause"
    done
    answer=${answer%$'\n'*}
}
# The first value of a key in $answer; nothing if it is not there.
field() { grep -oE "\"$1\": *(\"[^\"]*\"|[^,}]*)" <<<"$answer" | head -n 1 | sed 's/^"[^"]*": *//; s/"//g' || true; }
count_words() {
    for ((second = 0; second < ${2:-0}; second++)); do sleep 1; done
    wc -w <<<"$1"
}

while true; do
    send /jobs/next "{\"worker_id\": \"bash-$$\", \"lanes\": [\"words\"], \"wait_seconds\": 30}" || { sleep "$pause" && continue; }
    [ "$answer" != '{"job":null}' ] || continue
    job=$(field job_id) attempt=$(field attempt_id) every=$(field heartbeat_every_seconds)
    # The work is a process of its own, which can be stopped.
    exec 3< <(count_words "$(field text)" "$(field seconds)")
    work=$! cancelled=false words=
    until read -r -t "$every" words <&3; do
        [ $? -gt 128 ] || break # it died: the job is handed out again when its lease has ended
        # A refused heartbeat means that somebody else has the job, or that it is over.
        send "/jobs/$job/heartbeat" "{\"attempt_id\": \"$attempt\"}" || break
        cancelled=$(field cancel_requested)
        [ "$cancelled" != true ] || break
    done
    [ -n "$words" ] || kill "$work" 2>/dev/null || true
    exec 3<&-
    if [ "$cancelled" = true ]; then
        send "/jobs/$job" "{\"attempt_id\": \"$attempt\", \"state\": \"cancelled\"}" -X PATCH || true
    elif [ -n "$words" ]; then
        # Refused with 409 if it took too long, and somebody else has the job by now.
        send "/jobs/$job/complete" "{\"attempt_id\": \"$attempt\", \"result\": {\"words\": $words}}" || true
    fi
done
