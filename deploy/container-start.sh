#!/bin/sh
# Starts penstock in a container. `serve` gets the settings that a container needs; they come first, so arguments
# of your own override them. Everything else is run as it is: `ui`, `worker`, `doctor`, ...
set -eu
if [ "${1:-serve}" != serve ]; then
    exec penstock "$@"
fi
[ $# -eq 0 ] || shift
if [ -z "${PENSTOCK_PASSWORD:-}" ]; then
    echo "container-start: set PENSTOCK_PASSWORD, the password of the server" >&2
    exit 1
fi
file=
case "${1:-}" in
"" | --*) ;;
*)
    file=$1
    shift
    ;;
esac
# In a file, not on the command line, which everyone on the host can read.
umask 077
settings=$(mktemp)
[ -z "$file" ] || cat "$file" >"$settings"
password=$(printf '%s' "$PENSTOCK_PASSWORD" | sed 's/[\\"]/\\&/g')
printf '\nrequirepass "%s"\nmasterauth "%s"\n' "$password" "$password" >>"$settings"
exec penstock serve "$settings" --bind '*' '-::*' --dir /data --metrics-port 9121 --metrics-bind '*' \
    --log-format json "$@"
