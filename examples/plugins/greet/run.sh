#!/usr/bin/env bash
# One JSON object comes on standard input, one goes to standard output. Whatever else is to be said goes to standard error.
set -euo pipefail

if ! command -v jq > /dev/null; then
    echo '{"status": "error", "error": "jq is not installed", "retry": false}'
    exit 0
fi

request=$(cat)
name=$(jq -r '(.event.payload // .payload // {}).name // "world"' <<< "$request")
count=$(jq '(.state.count // 0) + 1' <<< "$request")

case "$(jq -r .command <<< "$request")" in
health)
    echo '{"status": "ok", "result": "healthy"}'
    ;;
*)
    jq -n --arg name "$name" --argjson count "$count" '{
        status: "ok",
        result: "hello \($name), number \($count)",
        state_updates: {count: $count},
        events: [{type: "greeted", payload: {name: $name, count: $count}}],
        logs: [{level: "info", message: "said hello"}]
    }'
    ;;
esac
