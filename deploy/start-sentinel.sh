#!/bin/sh
# Starts a Redis Sentinel that watches penstock. Sentinel writes to its configuration, so it is made here.
set -eu
umask 077
cat >/tmp/sentinel.conf <<END
port 26379
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel monitor penstock server 6379 2
sentinel auth-pass penstock $PENSTOCK_PASSWORD
sentinel down-after-milliseconds penstock 5000
sentinel failover-timeout penstock 30000
END
exec redis-server /tmp/sentinel.conf --sentinel
