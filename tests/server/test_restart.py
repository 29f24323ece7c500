"""Real processes that stop and start again: the data, the directory lock, the error messages."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
import redis

from tests.support.servers.penstock_server import penstock_command, running_penstock
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import free_port

# The directives of the redis.conf that Debian installs with Redis 7.0, without its comments.
STOCK_REDIS_CONF = """\
bind 127.0.0.1 -::1
protected-mode yes
port 6379
tcp-backlog 511
timeout 0
tcp-keepalive 300
daemonize yes
pidfile /run/redis/redis-server.pid
loglevel notice
logfile {log}
databases 16
always-show-logo no
set-proc-title yes
proc-title-template "{{title}} {{listen-addr}} {{server-mode}}"
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
rdb-del-sync-files no
dir {folder}
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
repl-diskless-sync-delay 5
repl-diskless-sync-max-replicas 0
repl-diskless-load disabled
repl-disable-tcp-nodelay no
replica-priority 100
acllog-max-len 128
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
replica-lazy-flush no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
oom-score-adj no
oom-score-adj-values 0 200 800
disable-thp yes
appendonly no
appendfilename "appendonly.aof"
appenddirname "appendonlydir"
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
aof-load-truncated yes
aof-use-rdb-preamble yes
aof-timestamp-enabled no
slowlog-log-slower-than 10000
slowlog-max-len 128
latency-monitor-threshold 0
notify-keyspace-events ""
hash-max-listpack-entries 512
hash-max-listpack-value 64
list-max-listpack-size -2
list-compress-depth 0
set-max-intset-entries 512
zset-max-listpack-entries 128
zset-max-listpack-value 64
hll-sparse-max-bytes 3000
stream-node-max-bytes 4096
stream-node-max-entries 100
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
dynamic-hz yes
aof-rewrite-incremental-fsync yes
rdb-save-incremental-fsync yes
jemalloc-bg-thread yes
"""


def refused_start(folder: Path) -> tuple[int, str]:
    command = penstock_command("serve", "--port", str(free_port()), "--dir", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_a_second_server_on_a_directory_is_refused(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        code, said = refused_start(tmp_path)
        assert code == 1
        assert f"penstock serve: {tmp_path} is in use by another server" in said
        assert "Traceback" not in said
        server.kill()  # the lock is released with the process
        server.start()
        assert server.end() == 0


def test_damage_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        server.client().xadd("s", {"a": "b" * 100})
        server.client().xadd("s", {"c": "d" * 100})
        assert server.end() == 0
    [path] = (tmp_path / "appendonlydir").glob("*.incr.aof")
    data = path.read_bytes().replace(b"bbbb", b"bxbb", 1)
    path.write_bytes(data)
    code, said = refused_start(tmp_path)
    assert code == 1
    assert str(path) in said
    assert "checksum" in said
    assert "(at byte " in said
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("words", "kept"),
    [([b"SHUTDOWN", b"SAVE"], 1), ([b"SHUTDOWN", b"NOSAVE"], 0), ([b"SHUTDOWN"], 0)],
)
def test_without_save_points_shutdown_saves_only_if_told(
    tmp_path: Path, words: list[bytes], kept: int
) -> None:
    with running_penstock("--appendonly", "no", "--save", "", data=tmp_path) as server:
        with RawRedis(server.port) as client:
            client.ask([[b"XADD", b"s", b"*", b"a", b"1"]])
            client.send([words])
            assert client.rest() == b""
        assert server.wait() == 0
        server.start()
        assert server.client().xlen("s") == kept


def test_sigterm_saves_where_there_are_save_points(tmp_path: Path) -> None:
    with running_penstock("--appendonly", "no", "--save", "900 1", data=tmp_path) as server:
        server.client().xadd("s", {"a": 1})
        assert server.end(signal.SIGTERM) == 0
        server.start()
        assert server.client().xlen("s") == 1


def test_a_stock_redis_conf_keeps_the_data_over_sigterm(tmp_path: Path) -> None:
    log = tmp_path / "redis-server.log"
    stock = STOCK_REDIS_CONF.format(log=log, folder=tmp_path / "data")
    (tmp_path / "data").mkdir()
    (tmp_path / "redis.conf").write_text(stock)
    for entries in (1, 2):
        port = free_port()
        command = penstock_command("serve", str(tmp_path / "redis.conf"), "--port", str(port))
        command += ["--daemonize", "no", "--pidfile", str(tmp_path / "pid")]
        process = subprocess.Popen(command)
        try:
            client = client_when_ready(port, log, entries)
            client.xadd("s", {"a": 1})
            assert client.xlen("s") == entries
            assert client.config_get("save") == {"save": "3600 1 300 100 60 10000"}
        finally:
            process.terminate()
        assert process.wait(timeout=30) == 0
    [reported] = [line for line in log.read_text().splitlines() if "ignored" in line][:1]
    assert reported.endswith("jemalloc-bg-thread")
    assert ": always-show-logo, " in reported


def client_when_ready(port: int, log: Path, starts: int) -> redis.Redis:
    """A client of a server that logs to a file, when the log has this many starts."""
    deadline = time.monotonic() + 30
    while not log.exists() or log.read_text().count(" * ready on ") < starts:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return redis.Redis(port=port, decode_responses=True)


def test_values_and_expiry_times_survive_a_restart(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        client = server.client(db=3)
        client.set("k", "v", px=10_000_000)
        at_ms = client.pexpiretime("k")
        client.rpush("l", *range(1000))
        assert server.end() == 0
        server.start()
        client = server.client(db=3)
        assert client.pexpiretime("k") == at_ms
        assert client.llen("l") == 1000


def test_a_log_that_is_not_read_is_reported(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path / "data") as server:
        server.client().xadd("s", {"a": 1})
    with running_penstock("--appendonly", "no", data=tmp_path / "data") as server:
        assert server.client().xlen("s") == 0
        assert "is not read: appendonly is no" in server.log()
