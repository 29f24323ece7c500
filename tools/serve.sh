#!/usr/bin/env bash
# Runs a durable server and its dashboard: serve.sh BIN PORT UI_PORT. Ctrl-C, or the end of either, stops both.
set -euo pipefail
bin=$1 port=$2 ui_port=$3

"$bin/penstock" serve --port "$port" &
server=$!
"$bin/penstock" ui --url "redis://127.0.0.1:$port" --port "$ui_port" &
dashboard=$!

# Background jobs of a script ignore Ctrl-C. So send SIGTERM to each, and wait for the last fsync of the server.
end_both() {
    trap - INT TERM EXIT
    kill -TERM "$server" "$dashboard" 2> /dev/null || true
    wait "$server" "$dashboard" || true
}
trap 'end_both; exit 130' INT
trap 'end_both; exit 143' TERM
trap end_both EXIT

status=0
wait -n "$server" "$dashboard" || status=$?
exit "$status"
