"""INFO: properties and counters of the server, as text."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.reply import Verbatim
from penstock.server.session.session import Session
from penstock.server.stats.info_sections import info_text


def info(session: Session, frame: Frame) -> Verbatim:
    """The requested sections; unknown names are skipped."""
    names = (frame.piece(at).decode("latin-1").lower() for at in range(1, frame.count))
    text = info_text(session.server, set(names) or {"default"})
    return Verbatim(text.encode("utf-8", "surrogateescape"))


COMMANDS = (
    Command(
        "INFO",
        info,
        -1,
        Flags.LOADING | Flags.STALE | Flags.DANGEROUS,
        NO_KEYS,
        "Return properties of the server: version, clients, memory, counters, keys.",
        syntax="[section [section ...]]",
        complexity="O(commands + databases)",
        group="server",
        in_session=True,
    ),
)
