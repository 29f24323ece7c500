"""The checks before a command runs, in Redis's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.commands.work.settle import settle_adds
from penstock.engine.table import Command, Flags
from penstock.errors import (
    CommandError,
    broken_off,
    disk_failed,
    loading,
    snapshots_fail,
    wrong_arity,
)
from penstock.server.replication.ack_waits import not_enough_replicas
from penstock.server.session.states import (
    BROKEN,
    DISK_FAILED,
    LOADING,
    MASTER_DOWN,
    MONITOR,
    NO_REPLICAS,
    OUT_OF_MEMORY,
    PAUSED_ALL,
    READ_ONLY,
    REPLICA,
    SAVE_FAILED,
    STRANGER,
    SUBSCRIBED,
)

if TYPE_CHECKING:
    from penstock.server.session.session import Session


# A web page can make a browser send chosen lines to a port of this machine. These two words occur in such a
# request and are not commands: the client is disconnected before the lines after them are read.
HTTP_WORDS = (b"POST", b"HOST:")
TLS_HANDSHAKE = (
    b"\x16\x03"  # a client that speaks TLS to a port for plain text starts with these bytes
)


def refusal_or_none(session: Session, command: Command, frame: Frame) -> CommandError | None:
    """The error for a client that may not run a command now, or None."""
    if session.server.state & BROKEN:
        return broken_off()
    if not command.takes(frame.count):
        return wrong_arity(command.name)
    if command.flags & Flags.PROTECTED and not _may_debug(session):
        return CommandError(
            'DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it'
            " from a local connection, otherwise you need to set this option in the configuration file, and"
            " then restart the server."
        )
    if session.state & STRANGER and not command.flags & Flags.NO_AUTH:
        return CommandError("Authentication required.", "NOAUTH")
    if session.transaction is not None and command.flags & Flags.NO_MULTI:
        return CommandError("Command not allowed inside a transaction")
    if session.permissions is not None:
        denial = session.permissions.denial_or_none(command, frame)
        if denial is not None:
            return session.server.users.refuse(session, command, frame, denial)
    if session.server.state & OUT_OF_MEMORY and _takes_memory(session, command, frame):
        return CommandError("command not allowed when used memory > 'maxmemory'.", "OOM")
    if session.server.state & (DISK_FAILED | SAVE_FAILED) and (
        _writes(session, command) or _is_failing_ping(session, command)
    ):
        failed = session.server.state & DISK_FAILED
        return disk_failed(session.server.disk_failure.reason) if failed else snapshots_fail()
    if session.server.state & NO_REPLICAS and _needs_replicas(session, command):
        return not_enough_replicas()
    if session.server.state & READ_ONLY and _writes(session, command):
        return CommandError("You can't write against a read only replica.", "READONLY")
    if (
        session.state & SUBSCRIBED
        and not session.output.resp3
        and not command.flags & Flags.WHILE_SUBSCRIBED
    ):
        shown = command.name.lower().replace(" ", "|")
        return CommandError(
            f"Can't execute '{shown}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
            " are allowed in this context"
        )
    if session.server.state & MASTER_DOWN and not command.flags & Flags.STALE:
        return CommandError(
            "Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "MASTERDOWN"
        )
    if session.server.state & LOADING and not command.flags & Flags.LOADING:
        return loading()
    if session.state & (MONITOR | REPLICA) and command.flags & (Flags.READ | Flags.WRITE):
        return CommandError(
            "Replica can't interact with the keyspace"
        )  # in Redis a monitor is a replica
    return None


def _is_failing_ping(session: Session, command: Command) -> bool:
    """Tell whether PING reports that the disk fails: Sentinel then chooses another primary."""
    server = session.server
    if command.name != "PING" or server.config is None:
        return False
    if server.state & DISK_FAILED and not server.disk_failure.has_failed:
        return False  # a new primary writes its first base: that is no failure
    return bool(server.config.value("ping-fails-without-disk"))


def _needs_replicas(session: Session, command: Command) -> bool:
    """Tell whether a command is refused while too few replicas are there."""
    held = session.server.replication.held
    if held.needed and not held.stale_reads and command.flags & Flags.READ:
        return True
    return _writes(session, command)


def _takes_memory(session: Session, command: Command, frame: Frame) -> bool:
    """Tell whether a command may need memory, for itself or for the queue of its transaction."""
    if command.name == "PENSTOCK SETTLE" and settle_adds(frame):
        return True  # acknowledging alone must pass: it lets memory become free
    transaction = session.transaction
    if transaction is None or command.flags & Flags.DENY_OOM:
        return bool(command.flags & Flags.DENY_OOM)
    return (
        transaction.denies_oom if command.name == "EXEC" else not command.flags & Flags.NOT_QUEUED
    )


def _writes(session: Session, command: Command) -> bool:
    """Tell whether a command changes data, or runs queued commands that do."""
    if command.name == "EXEC" and session.transaction is not None:
        return session.transaction.writes
    return bool(command.flags & Flags.WRITE)


def waits_for_pause(session: Session, command: Command) -> bool:
    """Tell whether the current CLIENT PAUSE holds a command back. A pause of all commands exempts none."""
    if session.server.state & PAUSED_ALL:
        return True
    if command.name == "EXEC" and session.transaction is not None:
        return session.transaction.is_paused
    return bool(command.flags & (Flags.WRITE | Flags.PAUSED_WITH_WRITES))


def _may_debug(session: Session) -> bool:
    allowed = session.server.debug_allowed
    if allowed == "local":
        host = session.info.address.rpartition(":")[0]
        return host.startswith(("127.", "/")) or host in ("::1", "[::1]")
    return allowed == "yes"
