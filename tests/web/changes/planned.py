"""Plans and makes a change of the stream `s`, like a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.web.changes.entry_changes import Change, carry_out
from penstock.web.http.sessions import Role, Session
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live

Plan = Callable[[ServerClient, StreamFacts], Awaitable[Change]]


def planned(live: Live, plan: Plan, do_it: bool = True) -> Change:
    async def run(server: ServerClient) -> Change:
        change = await plan(server, await one_stream(server, b"s"))
        if do_it:
            await carry_out(server, Session(Role.OPERATOR), change)
        return change

    return live.ask(run, allow_writes=True)
