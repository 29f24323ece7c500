#!/bin/sh
# Installs Debian's PostgreSQL, and the JDBC drivers of PostgreSQL and SQLite, for the tests of [[output]] jdbc.
#
# Debian would create a cluster and start it at boot. The tests start their own, so that is turned off first.
set -eu
jars=/usr/share/java

has_all() {
    ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 &&
        [ -e "$jars/postgresql.jar" ] && [ -e "$jars/sqlite-jdbc.jar" ]
}

give_up() {
    echo "postgres: $1; the tests with databases will be skipped" >&2
    exit 0
}

has_all && exit 0
command -v apt-get > /dev/null || give_up "PostgreSQL or a JDBC driver is missing"
[ "$(id -u)" = 0 ] || give_up "PostgreSQL or a JDBC driver is missing, and only root can install them"
echo "postgres: installing Debian's PostgreSQL and JDBC drivers" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
settings=/etc/postgresql-common/createcluster.d
mkdir -p "$settings"
echo "create_main_cluster = false" > "$settings/penstock.conf"
install="apt-get install -qq -y --no-install-recommends
    postgresql libpostgresql-jdbc-java libxerial-sqlite-jdbc-java"
$install > "$log" 2>&1 || { apt-get update -qq && $install; } > "$log" 2>&1 || {
    cat "$log" >&2
    give_up "apt-get could not install them"
}
rm -f "$log"
has_all || give_up "the packages have other files than expected"
