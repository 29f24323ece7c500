"""TIME, LASTSAVE, SHUTDOWN, and what clients use of scripts: FUNCTION FLUSH, SCRIPT FLUSH."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, syntax_error, unknown_subcommand
from penstock.reply import NO_REPLY, OK, NoReply, Status
from penstock.server.lifecycle import StopRequest
from penstock.server.session.session import Session
from penstock.server.stats.info_sections import last_save_s


def time(session: Session, frame: Frame) -> list[bytes]:
    """Seconds since 1970, and microseconds of the current second."""
    us = session.server.engine.context.instant.us
    return [b"%d" % (us // 1_000_000), b"%d" % (us % 1_000_000)]


def lastsave(session: Session, frame: Frame) -> int:
    """The time of the last snapshot, or else of the start, in seconds since 1970."""
    return last_save_s(session.server)


def shutdown(session: Session, frame: Frame) -> NoReply | Status:
    """Stop the server. The connection is closed without a reply; if the stop fails, there is an error."""
    words = [frame.piece(at).upper() for at in range(1, frame.count)]
    asked = set(words)
    if not asked <= {b"NOSAVE", b"SAVE", b"NOW", b"FORCE", b"ABORT"} or asked >= {
        b"NOSAVE",
        b"SAVE",
    }:
        raise syntax_error()
    if b"ABORT" in asked:
        if len(asked) > 1:
            raise syntax_error()
        if session.server.lifecycle is None or not session.server.lifecycle.abort_stop():
            raise CommandError("No shutdown in progress.")
        return OK
    lifecycle = session.server.lifecycle
    if lifecycle is None:
        raise CommandError("Errors trying to SHUTDOWN. Check logs.")
    save = True if b"SAVE" in asked else False if b"NOSAVE" in asked else None
    tally = session.server.tallies.by_name["SHUTDOWN"]
    session.block(tally, Blocked(frame.copy(), [], 0))  # until the stop is given up
    lifecycle.request_stop(StopRequest(save, b"NOW" in asked, b"FORCE" in asked))
    return NO_REPLY


def function_flush(session: Session, frame: Frame) -> Status:
    """Remove all functions; there are none."""
    if frame.count > 3:
        raise unknown_subcommand("FUNCTION", frame.piece(1))
    if frame.count == 3 and not _is_flush_mode(frame):
        raise CommandError("FUNCTION FLUSH only supports SYNC|ASYNC option")
    return OK


def script_flush(session: Session, frame: Frame) -> Status:
    """Remove all scripts; there are none."""
    if frame.count > 3 or (frame.count == 3 and not _is_flush_mode(frame)):
        raise CommandError("SCRIPT FLUSH only support SYNC|ASYNC option")
    return OK


def _is_flush_mode(frame: Frame) -> bool:
    return frame.is_word(2, b"SYNC") or frame.is_word(2, b"ASYNC")


_ALWAYS = Flags.LOADING | Flags.STALE

COMMANDS = (
    Command(
        "TIME",
        time,
        1,
        _ALWAYS | Flags.FAST,
        NO_KEYS,
        "Return the server's time.",
        since="2.6.0",
        group="server",
        in_session=True,
    ),
    Command(
        "LASTSAVE",
        lastsave,
        1,
        _ALWAYS | Flags.FAST,
        NO_KEYS,
        "Return the time of the last snapshot.",
        group="server",
        in_session=True,
    ),
    Command(
        "SHUTDOWN",
        shutdown,
        -1,
        _ALWAYS | Flags.ADMIN | Flags.NO_SCRIPT | Flags.NO_MULTI,
        NO_KEYS,
        "Stop the server.",
        syntax="[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
        complexity="O(keys) when saving",
        group="server",
        in_session=True,
    ),
    Command(
        "FUNCTION FLUSH",
        function_flush,
        -2,
        Flags.WRITE | Flags.NO_SCRIPT,
        NO_KEYS,
        "Remove all functions; there are none.",
        syntax="[ASYNC|SYNC]",
        since="7.0.0",
        group="scripting",
        in_session=True,
    ),
    Command(
        "SCRIPT FLUSH",
        script_flush,
        -2,
        Flags.NO_SCRIPT,
        NO_KEYS,
        "Remove all scripts; there are none.",
        syntax="[ASYNC|SYNC]",
        since="2.6.0",
        group="scripting",
        in_session=True,
    ),
)
