"""REPLICAOF, SLAVEOF, ROLE, FAILOVER; and what servers say to each other: PSYNC, SYNC, REPLCONF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at, int_between
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, shown, syntax_error
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.writer import VERSION_MIN
from penstock.reply import NO_REPLY, OK, NoReply, Status
from penstock.server.replication import report
from penstock.server.replication.partial_sync import synchronise
from penstock.server.session.session import Session
from penstock.server.session.states import KEYED_WRITE

if TYPE_CHECKING:
    from penstock.server.replication.replicas import Replica
    from penstock.server.replication.replication import Replication

_PORT_MAX = 65535
_VALKEY_RDB_VERSION = 11  # what every Valkey reads
_IP_BYTES_MAX = 255


def replicaof(session: Session, frame: Frame) -> Status:
    """Follow a primary, or with NO ONE become one."""
    replication = session.server.replication
    if session.server.durability is None:
        raise CommandError("this database is embedded: it has no replication")
    if replication.failover.is_on:
        raise CommandError("REPLICAOF not allowed while failing over.")
    if frame.is_word(1, b"NO") and frame.is_word(2, b"ONE"):
        replication.become_primary()
        return OK
    port = int_between(frame, 2, 0, _PORT_MAX, CommandError("Invalid master port"))
    host = shown(frame.piece(1))
    link = replication.link
    if link is not None and (link.host, link.port) == (host, port) and not link.is_refused:
        return Status("OK Already connected to specified master")
    if _owes_acks(session):
        raise CommandError(
            "REPLICAOF cannot follow a write in the same transaction: it waits for replicas."
        )
    replication.follow(host, port)
    return OK


def _owes_acks(session: Session) -> bool:
    """Tell whether the running transaction has written something that waits for replicas.

    Its reply is being encoded, so it could not become an error any more.
    """
    is_in_exec = not session.server.engine.context.may_block
    return is_in_exec and session.server.awaits_replicas and bool(session.keyed & KEYED_WRITE)


def role(session: Session, frame: Frame) -> list[Any]:
    """The role of this server, with its replicas or its primary."""
    return report.role(session.server)


def replconf(session: Session, frame: Frame) -> Status | NoReply:
    """A replica announces itself, or acks."""
    if frame.count % 2 == 0:
        raise syntax_error()
    replication = session.server.replication
    for at in range(1, frame.count, 2):
        option = frame.piece(at).lower()
        if option == b"ack":
            replica = replication.replicas.find_or_none(session)
            if replica is not None:
                _take_ack(replication, replica, frame, at + 1)
            return NO_REPLY
        if option == b"getack":
            return NO_REPLY
        _announce(session, option, frame, at + 1)
    return OK


def _take_ack(replication: Replication, replica: Replica, frame: Frame, at: int) -> None:
    """`ACK offset [FACK offset] [capa foreign-replicas]`: the first offset is at `at`."""
    synced = None
    for place in range(at + 1, frame.count - 1, 2):
        if frame.is_word(place, b"FACK"):
            synced = int_at(frame, place + 1)
        elif frame.is_word(place, b"CAPA") and frame.is_word(place + 1, b"FOREIGN-REPLICAS"):
            replica.has_foreign = True
            replication.puts_names_apart()
    replication.on_ack(replica, int_at(frame, at), synced)


def _announce(session: Session, option: bytes, frame: Frame, at: int) -> None:
    replica = session.server.replication.replicas.of(session)
    if option == b"listening-port":
        error = CommandError("value is not an integer or out of range")
        replica.announced_port = int_between(frame, at, 0, _PORT_MAX, error)
    elif option == b"ip-address":
        if frame.size(at) > _IP_BYTES_MAX:
            raise CommandError(
                "REPLCONF ip-address provided by replica instance is too long: "
                f"{frame.size(at)} bytes"
            )
        replica.announced_ip = shown(frame.piece(at))
    elif option == b"capa":
        replica.can_take_marked |= frame.is_word(at, b"EOF")
        replica.can_continue_renamed |= frame.is_word(at, b"PSYNC2")
        replica.reads_newer |= frame.is_word(at, b"RDB-CHANNEL-REPL")  # said by Redis 8
        replica.has_foreign |= frame.is_word(at, b"FOREIGN-REPLICAS")  # said by penstock
    elif option == b"version":
        replica.rdb_version = max(replica.rdb_version, _VALKEY_RDB_VERSION)
    elif option == b"rdb-version":
        asked = int_at(frame, at)
        replica.rdb_version = min(max(asked, VERSION_MIN), rdb_format.VERSION_MAX)
        replica.is_penstock = replica.reads_newer = True  # only penstock announces it
    else:
        raise CommandError(f"Unrecognized REPLCONF option: {shown(frame.piece(at - 1))}")


def psync(session: Session, frame: Frame) -> NoReply:
    """A replica wants the stream, from a place on."""
    replication = session.server.replication
    if session.server.durability is None:
        raise CommandError("this database is embedded: it has no replication")
    if replication.replicas.find_or_none(session) is not None:
        return NO_REPLY  # it has asked before; Redis ignores this too
    if replication.failover.is_on:
        raise CommandError("Can't SYNC while failing over", "NOMASTERLINK")
    wanted = int_at(frame, 2)
    asked = shown(frame.piece(1))
    # What a replica is sent goes past replies that wait, for example for the disk.
    if session.replies.unsent_bytes():
        raise CommandError("SYNC and PSYNC are invalid with pending output")
    if frame.count > 3 and frame.is_word(3, b"FAILOVER"):
        _take_over(session, asked)
    elif replication.link is not None and not replication.link.is_up:
        raise CommandError("Can't SYNC while not connected with my master", "NOMASTERLINK")
    synchronise(replication, replication.replicas.of(session), asked, wanted)
    return NO_REPLY


def _take_over(session: Session, asked: str) -> None:
    """The primary hands its role over to this server."""
    replication = session.server.replication
    if replication.is_primary:
        raise CommandError("PSYNC FAILOVER can't be sent to a master.")
    if asked != replication.feed.history.id:
        raise CommandError("PSYNC FAILOVER replid must match my replid.")
    durability = session.server.durability
    assert durability is not None
    if session.server.disk_failure.is_on or not durability.has_base:
        raise CommandError("PSYNC FAILOVER refused: this server could not keep writes in its log.")
    replication.become_primary(but=session)


def sync(session: Session, frame: Frame) -> NoReply:
    """The way in which replicas older than Redis 2.8 ask for a snapshot."""
    raise CommandError("SYNC is not supported: use PSYNC, as Redis does since version 2.8")


def failover(session: Session, frame: Frame) -> Status:
    """Hand the role of the primary over to a replica."""
    target: tuple[str, int] | None = None
    timeout_ms: int | None = None
    force = abort = False
    at = 1
    while at < frame.count:
        if frame.is_word(at, b"TO") and at + 2 < frame.count and target is None:
            port = int_between(frame, at + 2, 0, _PORT_MAX, syntax_error())
            target = (shown(frame.piece(at + 1)), port)
            at += 3
        elif frame.is_word(at, b"TIMEOUT") and at + 1 < frame.count and timeout_ms is None:
            timeout_ms = int_at(frame, at + 1)
            if timeout_ms <= 0:
                raise CommandError("FAILOVER timeout must be greater than 0")
            at += 2
        elif frame.is_word(at, b"FORCE") and not force:
            force, at = True, at + 1
        elif frame.is_word(at, b"ABORT") and not abort:
            abort, at = True, at + 1
        else:
            raise syntax_error()
    failing_over = session.server.replication.failover
    if abort:
        if frame.count > 2:
            raise syntax_error()
        failing_over.abort()
        return OK
    if force and (timeout_ms is None or target is None):
        raise CommandError(
            "FAILOVER with force option requires both a timeout and target HOST and IP."
        )
    if not session.server.engine.context.may_block:
        raise CommandError("FAILOVER cannot begin inside a transaction.")
    failing_over.begin(target, timeout_ms, force)
    return OK


_BETWEEN_SERVERS = Flags.ADMIN | Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE
_ROLE = Flags.ADMIN | Flags.NO_SCRIPT | Flags.STALE | Flags.NO_ASYNC_LOADING

COMMANDS = (
    Command(
        "ROLE",
        role,
        1,
        Flags.LOADING | Flags.STALE | Flags.FAST | Flags.NO_SCRIPT,
        NO_KEYS,
        "Return the replication role.",
        since="2.8.12",
        group="server",
        in_session=True,
    ),
    Command(
        "REPLICAOF",
        replicaof,
        3,
        _ROLE,
        NO_KEYS,
        "Follow a primary, or become one.",
        syntax="<host port | NO ONE>",
        since="5.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "SLAVEOF",
        replicaof,
        3,
        _ROLE,
        NO_KEYS,
        "Follow a primary, or become one: the old name of REPLICAOF.",
        syntax="<host port | NO ONE>",
        group="server",
        in_session=True,
    ),
    Command(
        "FAILOVER",
        failover,
        -1,
        Flags.ADMIN | Flags.NO_SCRIPT | Flags.STALE,
        NO_KEYS,
        "Hand the role of the primary over to a replica.",
        syntax="[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
        since="6.2.0",
        group="server",
        in_session=True,
    ),
    Command(
        "PSYNC",
        psync,
        -3,
        Flags.ADMIN | Flags.NO_SCRIPT | Flags.NO_MULTI | Flags.NO_ASYNC_LOADING,
        NO_KEYS,
        "Used by replicas: send the stream from a place on.",
        syntax="replicationid offset",
        since="2.8.0",
        group="server",
        in_session=True,
    ),
    Command(
        "SYNC",
        sync,
        1,
        Flags.ADMIN | Flags.NO_SCRIPT | Flags.NO_MULTI | Flags.NO_ASYNC_LOADING,
        NO_KEYS,
        "Used by replicas older than Redis 2.8; refused.",
        group="server",
        in_session=True,
    ),
    Command(
        "REPLCONF",
        replconf,
        -1,
        _BETWEEN_SERVERS,
        NO_KEYS,
        "Used by replicas: announce themselves and ack.",
        since="3.0.0",
        group="server",
        in_session=True,
    ),
)
