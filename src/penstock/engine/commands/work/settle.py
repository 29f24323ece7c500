"""The outcomes of a batch of attempts, all in one step: PENSTOCK SETTLE.

    ACK id attempt                            the entry is done
    RETRY id attempt delay-ms new-attempt     the next attempt is due after the delay
    DEAD id attempt reason traceback          the entry goes to the dead letters
    SEND ...                                  adds an entry if and only if the outcome before it was accepted

An outcome is accepted if the row still belongs to this consumer in this attempt. A worker whose lease was
taken over can settle nothing.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.commands.work.arguments import WorkArguments, work_group, work_keys
from penstock.engine.commands.work.rows import WAITING, WINDOW_MS, GroupRows
from penstock.engine.commands.work.send import Sending
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, CoreError

_KEYS_MAX = 1 << 20


class Outcome:
    """How one attempt ended, and what it sends."""

    __slots__ = ("_attempt", "_delay_ms", "_id", "_kind", "_next", "_reason", "_trace", "sendings")

    def __init__(self, kind: bytes, arguments: WorkArguments) -> None:
        """Raises: CommandError, InvalidID."""
        self._kind = kind
        self._id = arguments.id()
        self._attempt = arguments.number()
        self._delay_ms = self._next = 0
        self._reason = self._trace = b""
        if kind == b"RETRY":
            self._delay_ms = arguments.number(0, WINDOW_MS)
            self._next = arguments.number()
        elif kind == b"DEAD":
            self._reason, self._trace = arguments.word(), arguments.word()
        elif kind != b"ACK":
            raise CommandError("an outcome is ACK, RETRY or DEAD, and then any number of SEND")
        self.sendings: list[Sending] = []

    def adds(self) -> bool:
        """Tell whether it adds entries: dead letters, or what is sent."""
        return self._kind == b"DEAD" or bool(self.sendings)

    def run(self, context: Context, rows: GroupRows, dead: bytes) -> int:
        """Settle it; 0 if the attempt is no longer the consumer's."""
        if rows.mine_or_none(self._id, self._attempt) is None:
            return 0
        if self._kind == b"ACK":
            rows.acknowledge(self._id)
        elif self._kind == b"DEAD":
            rows.bury(dead, self._id, self._attempt, self._reason, self._trace)
        elif rows.fields_or_none(self._id) is None:
            rows.acknowledge(self._id)
        else:
            rows.claim([self._id], WAITING, self._delay_ms, self._next)
        for sending in self.sendings:
            sending.run(context)
        return 1


def settle_adds(frame: Frame) -> bool:
    """Tell whether a SETTLE adds entries, so that it needs memory."""
    try:
        return any(one.adds() for one in _read(WorkArguments(frame, 2, _KEYS_MAX))[2])
    except (CommandError, CoreError):
        return False  # it will be refused, and change nothing


def _read(arguments: WorkArguments) -> tuple[bytes, bytes, list[Outcome]]:
    """Group, consumer, outcomes. Raises: CommandError, InvalidID."""
    group, consumer = arguments.word(), arguments.word()
    outcomes: list[Outcome] = []
    while arguments.more():
        kind = arguments.word().upper()
        if kind == b"SEND" and outcomes:
            outcomes[-1].sendings.append(Sending(arguments))
        else:
            outcomes.append(Outcome(kind, arguments))
    return group, consumer, outcomes


def penstock_settle(context: Context, frame: Frame) -> list[int]:
    """Settle outcomes; a number for each: 1 if it was accepted, else 0."""
    arguments = WorkArguments(frame, 2, _KEYS_MAX)
    stream, dead = arguments.keys[:2]
    group, consumer, outcomes = _read(arguments)
    rows = GroupRows(context, stream, group, consumer)
    context.keyspace.stream_or_none(dead)
    for outcome in outcomes:
        for sending in outcome.sendings:
            sending.check(context)
    context.recorded = True
    return [outcome.run(context, rows, dead) for outcome in outcomes]


COMMANDS = (
    Command(
        "PENSTOCK SETTLE",
        penstock_settle,
        -7,
        Flags.WRITE,
        NO_KEYS,
        "Settle the outcomes of a batch of attempts in one step.",
        syntax="numkeys stream dead [key ...] group consumer [<ACK id attempt |"
        " RETRY id attempt delay-ms new-attempt | DEAD id attempt reason traceback> [SEND ...] ...]",
        since="0.2.0",
        complexity="O(log n) for each outcome, with n pending entries",
        group="penstock",
        find_keys=work_keys,
        find_group=work_group,
        # DEAD copies an entry to the dead letters: that reads it.
        access=("RW access update", "RW insert", "RW update"),
    ),
)
