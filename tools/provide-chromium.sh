#!/bin/sh
# Installs Debian's Chromium for the browser tests, unless there is one on PATH.
set -eu

if command -v chromium > /dev/null || command -v chromium-browser > /dev/null; then
    exit 0
fi

give_up() {
    echo "chromium: $1; the browser tests will be skipped" >&2
    exit 0
}

command -v apt-get > /dev/null || give_up "none on PATH"
[ "$(id -u)" = 0 ] || give_up "none on PATH, and only root can install it"
echo "chromium: installing Debian's package" >&2
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -qq -y --no-install-recommends chromium"
log=$(mktemp)
$install > "$log" 2>&1 || { apt-get update -qq && $install; } > "$log" 2>&1 || {
    cat "$log" >&2
    give_up "apt-get could not install it"
}
rm -f "$log"
