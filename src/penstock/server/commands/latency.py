"""LATENCY HISTOGRAM, and Redis's latency events, of which there are none here."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.reply import Pairs, Status
from penstock.server.command_catalogue import shown_name
from penstock.server.session.session import Session
from penstock.server.stats.tally import Tally


def histogram(session: Session, frame: Frame) -> Pairs:
    """The number of calls up to 1, 2, 4, ... µs per command. A container includes its subcommands."""
    tallies = [t for t in session.server.tallies.by_name.values() if t.calls]
    if frame.count > 2:
        wanted = [frame.piece(at).decode("latin-1").lower() for at in range(2, frame.count)]
        names = [(t, shown_name(t.command)) for t in tallies]
        tallies = [t for w in wanted for t, name in names if w in (name, name.partition("|")[0])]
    return Pairs([(shown_name(t.command).encode(), _of_one(t)) for t in tallies])


def _of_one(tally: Tally) -> Pairs:
    bounds: dict[int, int] = {}
    seen = 0
    for upper_us, calls in tally.buckets():
        seen += calls
        bounds[1 << max(0, upper_us - 1).bit_length()] = seen
    pairs: list[tuple[Any, Any]] = list(bounds.items())
    return Pairs([(b"calls", tally.calls), (b"histogram_usec", Pairs(pairs))])


def latest(session: Session, frame: Frame) -> list[Any]:
    """No event was noted."""
    return []


def history(session: Session, frame: Frame) -> list[Any]:
    """No event was noted."""
    return []


def reset(session: Session, frame: Frame) -> int:
    """Reset events; return how many: always 0."""
    return 0


def latency_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of LATENCY."""
    return help_of("LATENCY", _HELP)


_HELP = [
    "HISTORY <event>",
    "    The samples of an event. Events are not recorded: use HISTOGRAM or SLOWLOG.",
    "LATEST",
    "    The latest sample of each event.",
    "RESET [<event> ...]",
    "    Remove the samples of events.",
    "HISTOGRAM [COMMAND ...]",
    "    Return the number of calls up to 1, 2, 4, ... microseconds per command.",
]

_FLAGS = Flags.ADMIN | Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE

COMMANDS = (
    Command(
        "LATENCY HELP",
        latency_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of LATENCY.",
        since="2.8.13",
        group="server",
        in_session=True,
    ),
    Command(
        "LATENCY HISTOGRAM",
        histogram,
        -2,
        _FLAGS,
        NO_KEYS,
        "Return the latency histograms of commands.",
        syntax="[command [command ...]]",
        since="7.0.0",
        complexity="O(commands)",
        group="server",
        in_session=True,
    ),
    Command(
        "LATENCY HISTORY",
        history,
        3,
        _FLAGS,
        NO_KEYS,
        "Return the samples of an event; there are none.",
        syntax="event",
        since="2.8.13",
        group="server",
        in_session=True,
    ),
    Command(
        "LATENCY LATEST",
        latest,
        2,
        _FLAGS,
        NO_KEYS,
        "Return the latest samples of all events; there are none.",
        since="2.8.13",
        group="server",
        in_session=True,
    ),
    Command(
        "LATENCY RESET",
        reset,
        -2,
        _FLAGS,
        NO_KEYS,
        "Reset events; there are none.",
        syntax="[event [event ...]]",
        since="2.8.13",
        group="server",
        in_session=True,
    ),
)
