"""Reads, changes, and an unreachable server."""

from __future__ import annotations

import pytest

from penstock.client.address import BadUrl
from penstock.web.http.sessions import Role, Session
from penstock.web.refusal import Refused
from penstock.web.server.asking import READS, ServerClient, ServerUnreachable
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port
from tests.web.conftest import Live


def test_a_read_is_answered(live: Live) -> None:
    live.client.xadd("s", {"a": "1"})
    assert live.ask(lambda server: server.ask("XLEN", "s")) == 1


NO_QUESTIONS = [
    ("XADD", "s", "*", "a", "1"),
    ("flushall",),
    ("MEMORY", "PURGE"),
    ("EVAL", "return 1", 0),
    ("PENSTOCK", "APPENDBATCH"),
    ("CONFIG", "SET", "maxclients", "1"),
    ("CLIENT", "KILL", "127.0.0.1:1"),
    ("SLOWLOG", "RESET"),
]


@pytest.mark.parametrize("words", NO_QUESTIONS)
def test_a_command_that_is_not_a_read_is_not_sent(live: Live, words: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="not a read command"):
        live.ask(lambda server: server.ask(*words), allow_writes=True)
    assert live.client.exists("s") == 0


def test_a_change_is_refused_on_a_read_only_dashboard(live: Live) -> None:
    with pytest.raises(Refused, match="--allow-writes"):
        live.ask(lambda server: server.change(Session(Role.OPERATOR), "XADD", "s", "*", "a", "1"))
    assert live.client.exists("s") == 0


def test_a_change_is_made_if_allowed(live: Live) -> None:
    live.ask(
        lambda server: server.change(Session(Role.OPERATOR), "XADD", "s", "1-0", "a", "1"),
        allow_writes=True,
    )
    assert live.client.xlen("s") == 1


def test_the_error_text_of_the_server_is_shown(live: Live) -> None:
    live.client.set("text", "x")
    with pytest.raises(Refused, match="WRONGTYPE"):
        live.ask(lambda server: server.ask("XLEN", "text"))


def test_no_read_command_writes(live_redis: Live) -> None:
    told = live_redis.client.execute_command("COMMAND INFO", *sorted(READS - {"PENSTOCK"}))
    assert len(told) == len(READS) - 1
    assert [about[0] for about in told if b"write" in about[2]] == []


def test_an_unreachable_server_is_named_without_the_password() -> None:
    async def ask(server: ServerClient) -> object:
        return await server.ask("PING")

    port = free_port()
    live = Live("nobody", port, None)
    with pytest.raises(
        ServerUnreachable, match=f"cannot reach 127.0.0.1:{port}: connection refused"
    ):
        live.ask(ask)


def test_a_server_that_requires_a_password_is_reported() -> None:
    with running_penstock() as server, server.client() as client:
        client.config_set("requirepass", "secret")
        live = Live("penstock", server.port, client)
        with pytest.raises(ServerUnreachable, match=r"wants another password: .*[^.]$"):
            live.ask(lambda asked: asked.ask("XLEN", "s"))


def test_a_read_survives_a_restart_of_the_server() -> None:
    with running_penstock() as server:
        live = Live("penstock", server.port, server.client())

        async def twice(asked: ServerClient) -> object:
            await asked.ask("PING")
            live.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            return await asked.ask("PING")

        assert live.ask(twice) == b"PONG"


@pytest.mark.parametrize("url", ["http://x", "redis://h:port/0", "redis://:pa/ss@h", "redis://h/x"])
def test_a_bad_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(BadUrl) as caught:
        ServerClient(url)
    assert "pa/ss" not in str(caught.value)


def test_a_change_of_a_viewer_is_refused(live: Live) -> None:
    viewer = Session(Role.VIEWER)
    with pytest.raises(Refused, match="log in as an operator"):
        live.ask(
            lambda server: server.change(viewer, "XADD", "s", "*", "a", "1"), allow_writes=True
        )
    assert live.client.exists("s") == 0


def test_a_change_after_the_logout_is_refused(live: Live) -> None:
    gone = Session(Role.OPERATOR, ends_at=0)
    with pytest.raises(Refused, match="logged out"):
        live.ask(lambda server: server.change(gone, "XADD", "s", "*", "a", "1"), allow_writes=True)
    assert live.client.exists("s") == 0
