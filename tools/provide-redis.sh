#!/bin/sh
# Puts a redis-server for the differential tests into the given folder, unless there is one on PATH.
#
# This installs Debian's package redis-tools, not redis-server: it contains the same program under the name
# redis-check-rdb, and no service that starts now or at boot and takes port 6379.
set -eu
bin=$1

if [ -x "$bin/redis-server" ] || command -v redis-server > /dev/null; then
    exit 0
fi

give_up() {
    echo "redis: $1; the tests that compare with Redis will be skipped" >&2
    exit 0
}

program() { command -v redis-check-rdb; }

if ! program > /dev/null; then
    command -v apt-get > /dev/null || give_up "no redis-server on PATH"
    [ "$(id -u)" = 0 ] || give_up "no redis-server on PATH, and only root can install it"
    echo "redis: installing Debian's redis-tools" >&2
    export DEBIAN_FRONTEND=noninteractive
    install="apt-get install -qq -y --no-install-recommends redis-tools"
    log=$(mktemp)
    $install > "$log" 2>&1 || { apt-get update -qq && $install; } > "$log" 2>&1 || {
        cat "$log" >&2
        give_up "apt-get could not install redis-tools"
    }
    rm -f "$log"
fi

program > /dev/null || give_up "redis-tools contains no redis-check-rdb"
ln -sf "$(program)" "$bin/redis-server"
"$bin/redis-server" --version > /dev/null || {
    rm "$bin/redis-server"
    give_up "$(program) is not redis-server under another name on this system"
}
