"""DEBUG works only if the settings allow it."""

from __future__ import annotations

import pytest

from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal

REFUSED = (
    'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from'
    " a local connection, otherwise you need to set this option in the configuration file, and then restart"
    " the server."
)


def debugging(allowed: str = "yes", address: str = "10.0.0.1:5") -> ManualClient:
    bench = ServerBench()
    bench.server.debug_allowed = allowed
    client = bench.connect()
    client.session.info.address = address
    return client


def test_by_default_debug_is_refused() -> None:
    assert ServerBench().connect().reply("DEBUG SLEEP 0") == Refusal(REFUSED)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:5", "127.3.0.1:5", "::1:5", "[::1]:5", "/run/p.sock:0"]
)
def test_a_local_client_may_debug_with_local(address: str) -> None:
    assert debugging("local", address).reply("DEBUG SLEEP 0") == "OK"


@pytest.mark.parametrize("address", ["10.0.0.1:5", "?:0", "1127.0.0.1:5"])
def test_a_remote_client_may_not_debug_with_local(address: str) -> None:
    assert debugging("local", address).reply("DEBUG SLEEP 0") == Refusal(REFUSED)


def test_a_transaction_with_debug_is_aborted() -> None:
    client = debugging("no")
    client.reply("MULTI")
    assert client.reply("DEBUG SLEEP 0") == Refusal(REFUSED)
    assert client.reply("EXEC") == Refusal(
        "EXECABORT Transaction discarded because of previous errors."
    )


@pytest.mark.parametrize("seconds", ["0", "0.001", "-1", "x", "0.0abc"])
def test_sleep_takes_what_strtod_takes(seconds: str) -> None:
    assert debugging().reply(f"DEBUG SLEEP {seconds}") == "OK"


@pytest.mark.parametrize(
    ("word", "on"),
    [("0", False), ("1", True), ("x", False), ("-7", True), ("00", False), ("1" * 5000, True)],
)
def test_periodic_expiry_can_be_switched(word: str, on: bool) -> None:
    client = debugging()
    assert client.reply(f"DEBUG SET-ACTIVE-EXPIRE {word}") == "OK"
    assert client.session.server.active_expire is on


@pytest.mark.parametrize("words", ["NOSUCH", "SLEEP", "SLEEP 0 0", "OBJECT", "HELP x"])
def test_other_subcommands_are_unknown(words: str) -> None:
    name = words.partition(" ")[0]
    text = f"ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP."
    assert debugging().reply(f"DEBUG {words}") == Refusal(text)


def test_debug_object_of_a_missing_key_is_an_error() -> None:
    assert debugging().reply("DEBUG OBJECT nosuch") == Refusal("ERR no such key")
