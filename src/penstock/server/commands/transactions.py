"""Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.table import ALL_KEYS, NO_KEYS, Command, Flags
from penstock.errors import CommandError
from penstock.reply import NO_REPLY, NULL_ARRAY, OK, NoReply, NullArray, Status
from penstock.server.session.session import Session
from penstock.server.session.states import IN_MULTI, MONITORED
from penstock.server.session.transaction import Transaction, Watching, forget_watches, leave
from penstock.server.stats.tally import Tally


def multi(session: Session, frame: Frame) -> Status:
    """Start a transaction: the following commands are queued until EXEC."""
    if session.transaction is not None:
        raise CommandError("MULTI calls can not be nested")
    session.transaction = Transaction()
    session.state |= IN_MULTI
    return OK


def discard(session: Session, frame: Frame) -> Status:
    """Drop the queued commands and the watched keys."""
    if session.transaction is None:
        raise CommandError("DISCARD without MULTI")
    leave(session)
    return OK


def execute(session: Session, frame: Frame) -> NoReply | NullArray:
    """Run the queued commands unless a watched key has changed. Blocked readers are served at the end."""
    transaction = session.transaction
    if transaction is None:
        raise CommandError("EXEC without MULTI")
    broken_watch = session.watching is not None and session.watching.broken
    leave(session)
    if transaction.broken:
        raise CommandError("Transaction discarded because of previous errors.", "EXECABORT")
    if broken_watch:
        return NULL_ARRAY
    engine = session.server.engine
    engine.context.may_block = False
    session.output.put_array_head(len(transaction.commands))
    engine.begin_unit()
    try:
        for tally, queued in transaction.commands:
            _run_queued(session, tally, queued)
    except BaseException:
        engine.abandon_unit()
        raise
    finally:
        engine.context.may_block = True
        engine.context.keyspace = session.keyspace
    engine.end_unit()
    return NO_REPLY


def _run_queued(session: Session, tally: Tally, frame: Frame) -> None:
    """Run one queued command. Its reply is written at once: the next command may trim its entries."""
    server = session.server
    engine = server.engine
    instant = engine.context.instant
    started_us = instant.steady_us()
    engine.context.keyspace = session.keyspace
    try:
        _check_again(session, tally.command, frame)
        if tally.command.in_session:
            reply = tally.command.run(session, frame)
        else:
            reply = engine.run(tally.command, frame)
        if reply is not NO_REPLY:
            session.output.put(reply)
    except CommandError as error:
        tally.failed += 1
        session.reply(error)
    if server.state & MONITORED:
        server.monitors.show(session, tally.command, frame)
    us = instant.steady_us() - started_us
    tally.count(1, us)
    if server.awaits_replicas:
        session.keyed |= tally.keyed
    if us >= server.slow_us and not tally.command.flags & Flags.SKIP_SLOWLOG:
        server.slow_log.note(session, tally.command, frame, us)


def _check_again(session: Session, command: Command, frame: Frame) -> None:
    """The user's rules may have changed since the command was queued. Raises: CommandError."""
    if session.permissions is None:
        return
    denial = session.permissions.denial_or_none(command, frame)
    if denial is not None:
        raise session.server.users.refuse_in_exec(session, command, frame, denial)


def watch(session: Session, frame: Frame) -> Status:
    """Let EXEC run nothing if one of these keys changes before it."""
    if session.transaction is not None:
        raise CommandError("WATCH inside MULTI is not allowed")
    if session.watching is None:
        session.watching = Watching(session.server.engine.context)
    for index in range(1, frame.count):
        session.watching.add(session.keyspace, frame.piece(index))
    return OK


def unwatch(session: Session, frame: Frame) -> Status:
    """Stop watching keys."""
    forget_watches(session)
    return OK


_ALWAYS = Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE | Flags.FAST

COMMANDS = (
    Command(
        "MULTI",
        multi,
        1,
        _ALWAYS | Flags.NOT_QUEUED,
        NO_KEYS,
        "Start a transaction.",
        since="1.2.0",
        group="transactions",
        in_session=True,
    ),
    Command(
        "EXEC",
        execute,
        1,
        Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE | Flags.SKIP_SLOWLOG | Flags.NOT_QUEUED,
        NO_KEYS,
        "Run the commands of a transaction.",
        since="1.2.0",
        complexity="O(n) for n commands, plus the cost of each",
        group="transactions",
        in_session=True,
    ),
    Command(
        "DISCARD",
        discard,
        1,
        _ALWAYS | Flags.NOT_QUEUED,
        NO_KEYS,
        "Drop a transaction.",
        since="2.0.0",
        complexity="O(commands queued)",
        group="transactions",
        in_session=True,
    ),
    Command(
        "WATCH",
        watch,
        -2,
        _ALWAYS | Flags.NOT_QUEUED,
        ALL_KEYS,
        "Run the next transaction only if these keys do not change.",
        syntax="key [key ...]",
        since="2.2.0",
        complexity="O(1) a key",
        group="transactions",
        in_session=True,
        access=("RO",),
    ),
    Command(
        "UNWATCH",
        unwatch,
        1,
        _ALWAYS,
        NO_KEYS,
        "Stop watching keys.",
        since="2.2.0",
        group="transactions",
        in_session=True,
    ),
)
