"""The dashboard has an error text for any reply of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from penstock.client import bounded_replies
from penstock.client.replies import UnexpectedReply
from penstock.core.stream_id import SMALLEST
from penstock.web.http.sessions import Role, Session
from penstock.web.model.exports import ExportSelection, export
from penstock.web.model.facts import StreamFacts, one_stream, stream_facts
from penstock.web.model.groups import consumers_of, pending_of
from penstock.web.model.stream_page import read_ids
from penstock.web.model.structure import read_window
from penstock.web.model.tailing import Tail
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient, ServerUnreachable
from tests.support.servers.hostile_server import ENDLESS, REPEATED, REPLIES, hostile
from tests.web.conftest import Live

FACTS = StreamFacts(b"s", 1, 1, SMALLEST, None, None, None, None, 1, 1, ())


async def export_all(server: ServerClient) -> object:
    return [piece async for piece in export(server, ExportSelection(b"s"), "jsonl")]


QUESTIONS: dict[str, Callable[[ServerClient], Awaitable[object]]] = {
    "ask": lambda server: server.ask("XLEN", "s"),
    "change": lambda server: server.change(Session(Role.OPERATOR), "XADD", "s", "*", "a", "1"),
    "scan": lambda server: server.scan(b"0"),
    "time": lambda server: server.now_ms(),
    "facts": lambda server: stream_facts(server, [b"s", b"t"]),
    "one stream": lambda server: one_stream(server, b"s"),
    "consumers": lambda server: consumers_of(server, b"s", b"g"),
    "pending": lambda server: pending_of(server, b"s", b"g"),
    "structure": lambda server: read_window(server, FACTS),
    "ids": lambda server: read_ids(server, b"s", [SMALLEST]),
    "tail": lambda server: Tail(server, b"s").step(),
    "export": export_all,
}


def ask(port: int, question: Callable[[ServerClient], Awaitable[object]]) -> bool:
    """Whether there was a reply. Other outcomes must be exceptions that pages show as text."""
    live = Live("hostile", port, None)
    try:
        live.ask(question, allow_writes=True)
    except (ServerUnreachable, Refused, UnexpectedReply):
        return False
    return True


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_an_invalid_reply(reply: bytes) -> None:
    with hostile(reply) as server:
        assert not ask(server.port, QUESTIONS["ask"])
        assert not ask(server.port, QUESTIONS["change"])
        assert not ask(server.port, QUESTIONS["scan"])


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_reply_of_the_wrong_type(question: Callable[[ServerClient], Awaitable[object]]) -> None:
    for reply in REPEATED.values():
        with hostile(b"", answers=reply) as server:
            ask(server.port, question)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_reply_that_never_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_replies, "REPLY_BYTES_MAX", 1 << 16)
    with hostile(*ENDLESS[name]) as server:
        assert not ask(server.port, QUESTIONS["ask"])
