"""Tells clients that the log has failed, and accepts their writes again (persist/health.py)."""

from __future__ import annotations

from penstock.persist.aof.commit import Commit
from penstock.persist.disk import reason
from penstock.persist.health import lost
from penstock.server.server import Server
from penstock.server.session.states import DISK_FAILED


def refuse_writes(server: Server, commit: Commit) -> bool:
    """Refuse writes from now on, and answer held replies with an error; False if nothing has changed.

    Clients whose replies are held get `outcome_unknown`. Later replies to reads are sent.
    """
    if commit.failure is None or server.state & DISK_FAILED:
        return False
    server.state |= DISK_FAILED
    server.facts.disk_error = reason(commit.failure)
    server.turn.refuse_held(lost(commit.failure))
    commit.give_up_unreleased()
    return True


def accept_writes(server: Server) -> bool:
    """Accept writes again; False if they were not refused."""
    if not server.state & DISK_FAILED:
        return False
    server.state &= ~DISK_FAILED
    return True
