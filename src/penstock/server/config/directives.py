"""The table of directives: every setting there is, named as in redis.conf.

docs/configuration.md is written from it (tools/configuration_docs.py).
"""

from __future__ import annotations

from penstock.engine import compat
from penstock.server.config.apply import (
    apply_append_only,
    apply_auth_timeout,
    apply_events,
    apply_fsync_policy,
    apply_hz,
    apply_list_node_size,
    apply_log_level,
    apply_max_clients,
    apply_max_memory,
    apply_max_memory_clients,
    apply_output_limits,
    apply_password,
    apply_proto_max_bulk_len,
    apply_query_limit,
    apply_slow_limit,
    apply_slow_us,
    apply_stream_node_bytes,
    apply_stream_node_entries,
    set_debug_allowed,
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
    SaveTimes,
    Text,
    Words,
    YesNo,
)
from penstock.server.config.settings import AT_START, PROTECTED, Config, Directive, Vocabulary
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


def _no_eviction(value: str) -> str | None:
    if value == "noeviction":
        return None
    return f"penstock never evicts what it was given: noeviction, not {value}"


def _is_file_name(value: str) -> str | None:
    return f"must be a filename, not a path: {value!r}" if "/" in value or not value else None


NETWORK = (
    Directive("port", Number(0, 65535), 6379, "TCP port; 0 for none.", AT_START),
    Directive(
        "bind",
        Words("addresses; * and ::* for all, - in front: go on without it if it is not there"),
        ("127.0.0.1", "-::1"),
        "Addresses to listen on.",
        AT_START,
    ),
    Directive("unixsocket", Text("a path"), "", "Unix socket to listen on.", AT_START),
    Directive("unixsocketperm", Octal(), 0, "Permissions of the Unix socket.", AT_START),
    Directive(
        "tcp-backlog",
        Number(0, INT_MAX),
        511,
        "Connections that may wait to be accepted.",
        AT_START,
    ),
    Directive(
        "tcp-keepalive",
        Number(0, INT_MAX),
        300,
        "Seconds of silence after which the system asks whether a client is alive; 0 for never.",
    ),
    Directive(
        "timeout",
        Number(0, INT_MAX),
        0,
        "Seconds after which an idle client is closed; 0 for never.",
    ),
    Directive(
        "maxclients",
        Number(1, UINT_MAX),
        10000,
        "Clients at a time.",
        apply=apply_max_clients,
    ),
    Directive(
        "protected-mode",
        YesNo(),
        True,
        "Without a password, refuse clients that come from another machine.",
    ),
    Directive(
        "requirepass",
        Text("any text; empty for none"),
        "",
        "The password that clients must give.",
        apply=apply_password,
    ),
    Directive(
        "auth-timeout",
        Number(0, INT_MAX),
        AUTH_SECONDS,
        "Seconds that a new connection has to give the password, where one is set; 0 for no limit."
        " penstock's own.",
        apply=apply_auth_timeout,
    ),
)

CLIENTS = (
    Directive(
        "proto-max-bulk-len",
        Memory(1 << 20, LONG_MAX),
        512 << 20,
        "Largest argument of a command.",
        apply=apply_proto_max_bulk_len,
    ),
    Directive(
        "client-query-buffer-limit",
        Memory(1 << 20, LONG_MAX),
        1 << 30,
        "Most that a client may send before its command is complete.",
        apply=apply_query_limit,
    ),
    Directive(
        "client-output-buffer-limit",
        OutputClasses(),
        {"normal": _LIMITS.normal, "replica": _LIMITS.replica, "pubsub": _LIMITS.pubsub},
        "Most that a client may leave unread: at once, or for some seconds.",
        apply=apply_output_limits,
    ),
    Directive(
        "maxmemory-clients",
        MemoryOrPercent(0, LONG_MAX),
        0,
        "Memory of all clients' buffers together, or a percentage of maxmemory. Over it, the clients that"
        " occupy most are disconnected. 0 for no limit.",
        apply=apply_max_memory_clients,
    ),
)

DATA = (
    Directive("databases", Number(1, INT_MAX), 16, "Databases to SELECT from.", AT_START),
    Directive(
        "maxmemory",
        Memory(0, 2**64 - 1),
        0,
        "Memory of the process above which commands that add data are refused; 0 for no limit. Checked"
        " several times a second, so it can be exceeded for a moment. Connections that have not"
        " authenticated do not count.",
        apply=apply_max_memory,
    ),
    Directive(
        "maxmemory-policy",
        Choice(POLICIES),
        "noeviction",
        "What to remove when memory is short: nothing.",
        check=_no_eviction,
    ),
    Directive(
        "stream-node-max-bytes",
        Memory(0, LONG_MAX),
        4096,
        "Bytes of a node of a stream; 0 for no limit.",
        apply=apply_stream_node_bytes,
    ),
    Directive(
        "stream-node-max-entries",
        Number(0, LONG_MAX),
        100,
        "Entries of a node of a stream; 0 for no limit.",
        apply=apply_stream_node_entries,
    ),
    Directive(
        "list-max-listpack-size",
        Number(-INT_MAX - 1, INT_MAX),
        -2,
        "Size of a node of a list: -1 to -5 for 4 to 64 KiB, else elements.",
        apply=apply_list_node_size,
        also=("list-max-ziplist-size",),
    ),
    Directive(
        "notify-keyspace-events",
        Events(),
        0,
        "Which changes of keys are published, and where.",
        apply=apply_events,
    ),
)

WATCHING = (
    Directive(
        "slowlog-log-slower-than",
        Number(-1, LONG_MAX),
        10000,
        "Microseconds from which on a command is kept in the slow log; -1 for none.",
        apply=apply_slow_us,
    ),
    Directive(
        "slowlog-max-len",
        Number(0, LONG_MAX),
        128,
        "Commands that the slow log keeps.",
        apply=apply_slow_limit,
    ),
    Directive("latency-tracking", YesNo(), True, "Show percentiles of the times of commands."),
    Directive(
        "latency-tracking-info-percentiles",
        Percentiles(),
        (50.0, 99.0, 99.9),
        "Which percentiles INFO shows.",
    ),
    Directive(
        "loglevel",
        Choice(("debug", "verbose", "notice", "warning")),
        "notice",
        "The least important events that are logged.",
        apply=apply_log_level,
    ),
    Directive("logfile", Text("a path"), "", "Where to log; empty for stderr.", AT_START),
    Directive("hz", Hertz(0, INT_MAX), 10, "Rounds of regular work in a second.", apply=apply_hz),
    Directive(
        "enable-debug-command",
        _GUARDED,
        "no",
        "Who may use DEBUG.",
        AT_START,
        set_debug_allowed,
    ),
    Directive(
        "enable-protected-configs",
        _GUARDED,
        "no",
        "Who may change protected directives while the server runs.",
        AT_START,
    ),
)

DURABILITY = (
    Directive(
        "dir", Text("a path"), "penstock-data", "Where data lies; made if need be.", PROTECTED
    ),
    Directive(
        "dbfilename",
        Text("a name"),
        "dump.rdb",
        "Name of a snapshot.",
        PROTECTED,
        check=_is_file_name,
    ),
    Directive("appendonly", YesNo(), True, "Log every change.", apply=apply_append_only),
    Directive(
        "appendfsync",
        Choice(("everysec", "always", "no")),
        "always",
        "When what is logged must be on disk.",
        apply=apply_fsync_policy,
    ),
    Directive(
        "appendfilename",
        Text("a name"),
        "appendonly.aof",
        "Name of the log's files.",
        AT_START,
        check=_is_file_name,
    ),
    Directive(
        "appenddirname",
        Text("a name"),
        "appendonlydir",
        "Folder of the log's files.",
        AT_START,
        check=_is_file_name,
    ),
    Directive("save", SaveTimes(), (), "After how long and how many changes a snapshot is made."),
    Directive(
        "no-appendfsync-on-rewrite",
        YesNo(),
        False,
        "While the log is rewritten, do not sync: replies do not wait for the disk then, whatever"
        " `appendfsync` says.",
        apply=apply_fsync_policy,
    ),
    Directive(
        "auto-aof-rewrite-percentage",
        Number(0, INT_MAX),
        100,
        "Growth that makes the log rewritten.",
    ),
    Directive(
        "auto-aof-rewrite-min-size", Memory(0, LONG_MAX), 64 << 20, "Size below which it is not."
    ),
    Directive(
        "aof-load-truncated",
        YesNo(),
        True,
        "Cut off a torn end of the log, keep it in a file `cut-*`, and go on. With `no` the start is"
        " refused.",
    ),
    Directive("aof-use-rdb-preamble", YesNo(), True, "Begin a rewritten log with a snapshot."),
    Directive(
        "aof-timestamp-enabled",
        YesNo(),
        False,
        "Note times in the log.",
        apply=apply_fsync_policy,
    ),
    Directive("rdbcompression", YesNo(), True, "Compress snapshots."),
    Directive("rdbchecksum", YesNo(), True, "Check snapshots.", AT_START),
    Directive(
        "stop-writes-on-bgsave-error",
        YesNo(),
        True,
        "Refuse writes while snapshots cannot be made.",
    ),
)

OURS = (
    Directive(
        "compat-version",
        Choice(tuple(compat.LEVELS)),
        compat.NEWEST.version,
        "The version of Redis to behave as, where versions differ. penstock's own.",
        AT_START,
    ),
)

SECTIONS = {
    "Network": NETWORK,
    "Clients": CLIENTS,
    "Data": DATA,
    "Watching it": WATCHING,
    "Durability": DURABILITY,
    "penstock": OURS,
}
VOCABULARY = Vocabulary(tuple(row for rows in SECTIONS.values() for row in rows), IGNORED, REFUSED)


def default_config() -> Config:
    """All directives at their defaults."""
    return Config(VOCABULARY)
