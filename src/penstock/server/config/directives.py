"""The table of directives: all settings, named as in redis.conf.

tools/configuration_docs.py generates docs/configuration.md from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.core.idempotency import (
    DURATION_S_DEFAULT,
    DURATION_S_MAX,
    SIZE_DEFAULT,
    SIZE_MAX,
)
from penstock.engine import compat
from penstock.server.acl.denial_log import LENGTH_DEFAULT
from penstock.server.config.apply import (
    apply_append_only,
    apply_auth_timeout,
    apply_debug_allowed,
    apply_denial_log_length,
    apply_events,
    apply_fsync_policy,
    apply_hz,
    apply_idempotency_seconds,
    apply_idempotency_size,
    apply_list_node_size,
    apply_max_clients,
    apply_max_memory,
    apply_max_memory_clients,
    apply_output_limits,
    apply_password,
    apply_proto_max_bulk_len,
    apply_pubsub_default,
    apply_query_limit,
    apply_slow_limit,
    apply_slow_us,
    apply_stream_node_bytes,
    apply_stream_node_entries,
)
from penstock.server.config.foreign_directives import IGNORED, REFUSED
from penstock.server.config.kinds import (
    INT_MAX,
    LONG_MAX,
    UINT_MAX,
    Choice,
    Events,
    Hertz,
    Memory,
    MemoryOrPercent,
    Number,
    Octal,
    OutputClasses,
    Percentiles,
    Policies,
    SaveTimes,
    Text,
    Time,
    Words,
    YesNo,
)
from penstock.server.config.process_directives import PROCESS
from penstock.server.config.replication_directives import REPLICATION
from penstock.server.config.settings import AT_START, PROTECTED, Config, Directive, Vocabulary
from penstock.server.config.tls_directives import TLS
from penstock.server.net.output_limits import OutputLimits
from penstock.server.net.strangers import AUTH_SECONDS

POLICIES = (
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
)
_GUARDED = Choice(("no", "yes", "local"))
_LIMITS = OutputLimits()
# Redis's default: a snapshot after an hour with 1 change, 5 minutes with 100, a minute with 10,000.
REDIS_SAVE_POINTS = ((3600, 1), (300, 100), (60, 10_000))


def _no_eviction(value: str) -> str | None:
    if value == "noeviction":
        return None
    return f"penstock never evicts keys: only noeviction is supported, not {value}"


def _is_file_name(value: str) -> str | None:
    return f"must be a filename, not a path: {value!r}" if "/" in value or not value else None


def _save_points(values: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """With a log no snapshots are needed; without one, Redis's save points keep the data."""
    return () if values["appendonly"] else REDIS_SAVE_POINTS


NETWORK = (
    Directive("port", Number(0, 65535), 6379, "TCP port; 0 to listen on no TCP port.", AT_START),
    Directive(
        "bind",
        Words("addresses; * and ::* for all; with - in front, an address may be unavailable"),
        ("127.0.0.1", "-::1"),
        "Addresses to listen on.",
        AT_START,
    ),
    Directive("unixsocket", Text("a path"), "", "Path of a Unix socket to listen on.", AT_START),
    Directive("unixsocketperm", Octal(), 0, "Permissions of the Unix socket.", AT_START),
    Directive(
        "tcp-backlog",
        Number(0, INT_MAX),
        4096,
        "Connections that may wait to be accepted (backlog of listen()).",
        AT_START,
    ),
    Directive(
        "tcp-keepalive",
        Number(0, INT_MAX),
        300,
        "Idle seconds before TCP keepalive probes are sent to a client; 0 for none.",
    ),
    Directive(
        "timeout",
        Number(0, INT_MAX),
        0,
        "Close a client after this many idle seconds; 0 for never.",
    ),
    Directive(
        "maxclients",
        Number(1, UINT_MAX),
        10000,
        "Maximum number of connected clients.",
        apply=apply_max_clients,
    ),
    Directive(
        "protected-mode",
        YesNo(),
        True,
        "While no password is set, refuse clients from other machines.",
    ),
    Directive(
        "requirepass",
        Text("any text; empty for none"),
        "",
        "Password that clients must send (AUTH): the password of the user `default`.",
        apply=apply_password,
    ),
    Directive(
        "auth-timeout",
        Number(0, INT_MAX),
        AUTH_SECONDS,
        "If a password is set, close a connection that has not authenticated after this many seconds;"
        " 0 for no limit. Not in Redis.",
        apply=apply_auth_timeout,
    ),
)

USERS = (
    Directive(
        "aclfile",
        Text("a path"),
        "",
        "File with the users, one on each line; instead of `user` lines. ACL LOAD and ACL SAVE use it.",
        AT_START,
    ),
    Directive(
        "acl-pubsub-default",
        Choice(("allchannels", "resetchannels")),
        "resetchannels",
        "Channels of a new user: all or none.",
        apply=apply_pubsub_default,
    ),
    Directive(
        "acllog-max-len",
        Number(0, LONG_MAX),
        LENGTH_DEFAULT,
        "Maximum entries of ACL LOG.",
        apply=apply_denial_log_length,
    ),
)

CLIENTS = (
    Directive(
        "proto-max-bulk-len",
        Memory(1 << 20, LONG_MAX),
        512 << 20,
        "Maximum size of a command's argument.",
        apply=apply_proto_max_bulk_len,
    ),
    Directive(
        "client-query-buffer-limit",
        Memory(1 << 20, LONG_MAX),
        1 << 30,
        "Maximum size of a client's unprocessed input.",
        apply=apply_query_limit,
    ),
    Directive(
        "client-output-buffer-limit",
        OutputClasses(),
        {"normal": _LIMITS.normal, "replica": _LIMITS.replica, "pubsub": _LIMITS.pubsub},
        "Disconnect a client whose unread replies exceed the hard limit, or the soft limit for some seconds.",
        apply=apply_output_limits,
    ),
    Directive(
        "maxmemory-clients",
        MemoryOrPercent(0, LONG_MAX),
        0,
        "Maximum memory of all clients' buffers together, in bytes or as a percentage of maxmemory. Above"
        " it, the clients with the largest buffers are disconnected. 0 for no limit.",
        apply=apply_max_memory_clients,
    ),
)

DATA = (
    Directive("databases", Number(1, INT_MAX), 16, "Number of databases (SELECT).", AT_START),
    Directive(
        "maxmemory",
        Memory(0, 2**64 - 1),
        0,
        "Refuse commands that add data while the process uses more memory than this; 0 for no limit. Checked"
        " several times a second, so it can be exceeded briefly. Connections that have not authenticated do"
        " not count.",
        apply=apply_max_memory,
    ),
    Directive(
        "maxmemory-policy",
        Choice(POLICIES),
        "noeviction",
        "Keys to evict when memory is short. Only noeviction is supported.",
        check=_no_eviction,
    ),
    Directive(
        "stream-node-max-bytes",
        Memory(0, LONG_MAX),
        4096,
        "Maximum size of a stream node; 0 for no limit.",
        apply=apply_stream_node_bytes,
    ),
    Directive(
        "stream-idmp-duration",
        Number(1, DURATION_S_MAX),
        DURATION_S_DEFAULT,
        "Seconds for which a new stream remembers the messages of its producers.",
        apply=apply_idempotency_seconds,
    ),
    Directive(
        "stream-idmp-maxsize",
        Number(1, SIZE_MAX),
        SIZE_DEFAULT,
        "Messages of each producer that a new stream remembers.",
        apply=apply_idempotency_size,
    ),
    Directive(
        "stream-node-max-entries",
        Number(0, LONG_MAX),
        100,
        "Maximum entries of a stream node; 0 for no limit.",
        apply=apply_stream_node_entries,
    ),
    Directive(
        "stream-retention",
        Policies(),
        (),
        "What is removed from streams whose names match a pattern (see Retention).",
    ),
    Directive(
        "consumer-idle-timeout",
        Time(),
        0,
        "Remove consumers without pending entries that made no request for this long; 0 for never.",
    ),
    Directive(
        "list-max-listpack-size",
        Number(-INT_MAX - 1, INT_MAX),
        -2,
        "Maximum size of a list node: -1 to -5 for 4 to 64 KiB, otherwise a number of elements.",
        apply=apply_list_node_size,
        also=("list-max-ziplist-size",),
    ),
    Directive(
        "notify-keyspace-events",
        Events(),
        0,
        "Keyspace events to publish.",
        apply=apply_events,
    ),
)

MONITORING = (
    Directive(
        "slowlog-log-slower-than",
        Number(-1, LONG_MAX),
        10000,
        "Log commands that take at least this many microseconds in the slow log; -1 for none.",
        apply=apply_slow_us,
    ),
    Directive(
        "slowlog-max-len",
        Number(0, LONG_MAX),
        128,
        "Maximum entries of the slow log.",
        apply=apply_slow_limit,
    ),
    Directive("latency-tracking", YesNo(), True, "Show latency percentiles per command."),
    Directive(
        "latency-tracking-info-percentiles",
        Percentiles(),
        (50.0, 99.0, 99.9),
        "Percentiles that INFO shows.",
    ),
    Directive(
        "metrics-port",
        Number(0, 65535),
        0,
        "Port for /metrics (Prometheus), /healthz and /readyz over HTTP, without a password; 0 for none. Not"
        " in Redis.",
        AT_START,
    ),
    Directive(
        "metrics-bind",
        Words("addresses; as for bind"),
        ("127.0.0.1",),
        "Addresses of `metrics-port`. Not in Redis.",
        AT_START,
    ),
    Directive(
        "metrics-streams-max",
        Number(0, INT_MAX),
        1000,
        "Maximum number of streams in /metrics. Not in Redis.",
    ),
    Directive("hz", Hertz(0, INT_MAX), 10, "Runs of the periodic work per second.", apply=apply_hz),
    Directive(
        "enable-debug-command",
        _GUARDED,
        "no",
        "Clients that may use DEBUG.",
        AT_START,
        apply_debug_allowed,
    ),
    Directive(
        "enable-protected-configs",
        _GUARDED,
        "no",
        "Clients that may change protected directives at run time.",
        AT_START,
    ),
)

DURABILITY = (
    Directive(
        "dir", Text("a path"), "penstock-data", "Data directory; created if missing.", PROTECTED
    ),
    Directive(
        "dbfilename",
        Text("a name"),
        "dump.rdb",
        "File name of the snapshot.",
        PROTECTED,
        check=_is_file_name,
    ),
    Directive("appendonly", YesNo(), True, "Log every change (AOF).", apply=apply_append_only),
    Directive(
        "appendfsync",
        Choice(("everysec", "always", "no")),
        "always",
        "When the log is synced to disk: before each reply, every second, or when the system decides.",
        apply=apply_fsync_policy,
    ),
    Directive(
        "appendfilename",
        Text("a name"),
        "appendonly.aof",
        "Base name of the log's files.",
        AT_START,
        check=_is_file_name,
    ),
    Directive(
        "appenddirname",
        Text("a name"),
        "appendonlydir",
        "Directory of the log's files, inside `dir`.",
        AT_START,
        check=_is_file_name,
    ),
    Directive(
        "save",
        SaveTimes(),
        (),
        "Save points: write a snapshot after this many seconds with at least this many changes, and at"
        " shutdown. Default with `appendonly no`: Redis's `3600 1 300 100 60 10000`.",
        derived=_save_points,
    ),
    Directive(
        "no-appendfsync-on-rewrite",
        YesNo(),
        False,
        "Do not sync while the log is rewritten. Replies then do not wait for the disk, whatever"
        " `appendfsync` is.",
        apply=apply_fsync_policy,
    ),
    Directive(
        "auto-aof-rewrite-percentage",
        Number(0, INT_MAX),
        100,
        "Rewrite the log when it has grown by this percentage; 0 for never.",
    ),
    Directive(
        "auto-aof-rewrite-min-size",
        Memory(0, LONG_MAX),
        64 << 20,
        "Do not rewrite a smaller log by itself.",
    ),
    Directive(
        "aof-load-truncated",
        YesNo(),
        True,
        "If the log ends in the middle of a command, move the torn end to a file `cut-*` and start. With"
        " `no` the server refuses to start.",
    ),
    Directive("aof-use-rdb-preamble", YesNo(), True, "Start a rewritten log with a snapshot."),
    Directive(
        "aof-timestamp-enabled",
        YesNo(),
        False,
        "Write timestamps to the log.",
        apply=apply_fsync_policy,
    ),
    Directive("rdbcompression", YesNo(), True, "Compress snapshots."),
    Directive("rdbchecksum", YesNo(), True, "Write and verify checksums of snapshots.", AT_START),
    Directive(
        "stop-writes-on-bgsave-error",
        YesNo(),
        True,
        "Refuse writes while the last snapshot has failed.",
    ),
    Directive(
        "ping-fails-without-disk",
        YesNo(),
        False,
        "Reply to PING with MISCONF while writes are refused because the log or the last snapshot cannot be"
        " written, so that Sentinel fails over. Redis 7 does so. Not in Redis.",
    ),
)

PENSTOCK = (
    Directive(
        "compat-version",
        Choice(tuple(compat.LEVELS)),
        compat.DEFAULT.version,
        "Redis version to imitate where versions differ. Not in Redis.",
        AT_START,
    ),
)

SECTIONS = {
    "Network": NETWORK,
    "TLS": TLS,
    "Users": USERS,
    "Clients": CLIENTS,
    "Data": DATA,
    "Process and log": PROCESS,
    "Monitoring": MONITORING,
    "Durability": DURABILITY,
    "Replication": REPLICATION,
    "penstock": PENSTOCK,
}
VOCABULARY = Vocabulary(tuple(row for rows in SECTIONS.values() for row in rows), IGNORED, REFUSED)


def default_config() -> Config:
    """All directives at their defaults."""
    return Config(VOCABULARY)
