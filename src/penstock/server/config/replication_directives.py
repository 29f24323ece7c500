"""The directives of replication, a part of the table in directives.py."""

from __future__ import annotations

from penstock.server.config.apply import (
    apply_ack_timeout,
    apply_acks_on_disk,
    apply_backlog_size,
    apply_needed_acks,
    apply_needed_replicas,
    apply_replica_role,
)
from penstock.server.config.kinds import (
    INT_MAX,
    LONG_MAX,
    Choice,
    Memory,
    Number,
    Primary,
    Text,
    YesNo,
)
from penstock.server.config.settings import AT_START, Directive

REPLICATION = (
    Directive(
        "replicaof",
        Primary(),
        None,
        "Follow this primary. REPLICAOF changes it at run time.",
        AT_START,
        also=("slaveof",),
    ),
    Directive(
        "masterauth",
        Text("any text; empty for none"),
        "",
        "Password that this server sends to its primary.",
    ),
    Directive(
        "masteruser", Text("a name; empty for the default user"), "", "User of `masterauth`."
    ),
    Directive(
        "replica-read-only",
        YesNo(),
        True,
        "A replica refuses writes of clients.",
        apply=apply_replica_role,
        also=("slave-read-only",),
    ),
    Directive(
        "replica-serve-stale-data",
        YesNo(),
        True,
        "A replica without its primary still replies to reads.",
        apply=apply_replica_role,
        also=("slave-serve-stale-data",),
    ),
    Directive(
        "replica-priority",
        Number(0, INT_MAX),
        100,
        "Sentinel promotes the replica with the lowest priority; 0 for never.",
        also=("slave-priority",),
    ),
    Directive(
        "replica-announced",
        YesNo(),
        True,
        "Sentinel may show this replica to clients.",
    ),
    Directive(
        "replica-announce-ip",
        Text("an address; empty for the one of the connection"),
        "",
        "Address under which clients reach this replica.",
        also=("slave-announce-ip",),
    ),
    Directive(
        "replica-announce-port",
        Number(0, 65535),
        0,
        "Port under which clients reach this replica; 0 for `port`.",
        also=("slave-announce-port",),
    ),
    Directive(
        "replica-foreign-types",
        Choice(("refuse", "skip")),
        "refuse",
        "What a replica does with keys of types that penstock does not hold: refuse the sync, or skip them."
        " A replica that skips is never promoted. Not in Redis.",
    ),
    Directive(
        "replica-allow-empty-primary",
        YesNo(),
        False,
        "An empty primary may replace the data of a replica. Not in Redis.",
    ),
    Directive(
        "repl-diskless-sync",
        YesNo(),
        True,
        "Send a snapshot to replicas without writing it to disk first.",
    ),
    Directive(
        "repl-diskless-sync-delay",
        Number(0, INT_MAX),
        5,
        "Seconds to wait for more replicas before a snapshot without a disk begins.",
    ),
    Directive(
        "repl-ping-replica-period",
        Number(1, INT_MAX),
        10,
        "Seconds between two PINGs in the stream.",
        also=("repl-ping-slave-period",),
    ),
    Directive(
        "repl-timeout",
        Number(1, INT_MAX),
        60,
        "Seconds without a sign of life after which a replica or a primary counts as lost.",
    ),
    Directive(
        "repl-backlog-size",
        Memory(1, LONG_MAX),
        1 << 20,
        "Bytes of the stream that are kept for replicas that were away; at least 16kb.",
        apply=apply_backlog_size,
    ),
    Directive(
        "repl-backlog-ttl",
        Number(0, LONG_MAX),
        3600,
        "Seconds after which a primary without replicas frees the backlog; 0 for never.",
    ),
    Directive(
        "min-replicas-to-write",
        Number(0, INT_MAX),
        0,
        "Refuse writes with fewer replicas than this whose last ack is recent; 0 for no limit.",
        apply=apply_needed_replicas,
        also=("min-slaves-to-write",),
    ),
    Directive(
        "min-replicas-max-lag",
        Number(0, INT_MAX),
        10,
        "Seconds for which an ack is recent.",
        apply=apply_needed_replicas,
        also=("min-slaves-max-lag",),
    ),
    Directive(
        "min-replicas-ack",
        Number(0, INT_MAX),
        0,
        "Reply to commands on keys when this many replicas have the changes; refuse writes with fewer"
        " replicas. Not in Redis.",
        apply=apply_needed_acks,
    ),
    Directive(
        "min-replicas-ack-fsync",
        YesNo(),
        False,
        "With min-replicas-ack: the replicas must have the changes on disk. Not in Redis.",
        apply=apply_acks_on_disk,
    ),
    Directive(
        "min-replicas-ack-timeout",
        Number(1, INT_MAX),
        1000,
        "With min-replicas-ack: milliseconds after which a waiting reply becomes an error. Not in Redis.",
        apply=apply_ack_timeout,
    ),
    Directive(
        "min-replicas-stale-reads",
        YesNo(),
        True,
        "With min-replicas-ack: reply to reads while too few replicas are there. Not in Redis.",
        apply=apply_needed_acks,
    ),
    Directive("tls-replication", YesNo(), False, "Connect to the primary by TLS."),
    Directive(
        "shutdown-timeout",
        Number(0, INT_MAX),
        10,
        "Seconds for which a stopping primary waits for its replicas.",
    ),
)
