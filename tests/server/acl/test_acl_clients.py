"""Clients of users with limited rights."""

from __future__ import annotations

import pytest

from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal

LIMITED = "on >pw ~a* %R~r* %W~w* &ch* +@all -flushall -config|get"


def logged_in(server: ServerBench, name: str = "u") -> ManualClient:
    client = server.connect()
    assert client.reply(f"AUTH {name} pw") == "OK"
    return client


def limited(rules: str = LIMITED, level: str = "8.6") -> tuple[ManualClient, ManualClient]:
    """A client of `default`, and one of the user `u` with these rules."""
    server = ServerBench(level)
    admin = server.connect()
    assert admin.reply(f"ACL SETUSER u {rules}") == "OK"
    return admin, logged_in(server)


@pytest.mark.parametrize("level", ["7.0", "8.6"])
def test_refusals_have_the_texts_of_the_level(level: str) -> None:
    _, client = limited(level=level)
    old = "NOPERM this user has no permissions to "
    texts = {
        "FLUSHALL": (
            f"{old}run the 'flushall' command",
            "User u has no permissions to run the 'flushall' command",
        ),
        "CONFIG GET x": (
            f"{old}run the 'config|get' command",
            "User u has no permissions to run the 'config|get' command",
        ),
        "GET b": (
            f"{old}access one of the keys used as arguments",
            "No permissions to access a key",
        ),
        "PUBLISH x y": (
            f"{old}access one of the channels used as arguments",
            "No permissions to access a channel",
        ),
    }
    for command, (before, after) in texts.items():
        wanted = before if level == "7.0" else f"NOPERM {after}"
        assert client.reply(command) == Refusal(wanted)


def test_reading_and_writing_a_key_are_separate_rights() -> None:
    _, client = limited()
    assert client.reply("GET r1") is None
    assert client.reply("SET w1 x") == "OK"
    assert client.reply("EXISTS r1 w1") == 1
    refused = Refusal("NOPERM No permissions to access a key")
    assert client.reply("SET r1 x") == refused
    assert client.reply("GET w1") == refused
    assert client.reply("SET w1 x GET") == refused
    assert client.reply("COPY r1 w2") == 0
    assert client.reply("RENAME r1 w2") == refused


def test_a_consumer_named_streams_does_not_hide_the_keys() -> None:
    _, client = limited("on >pw ~a +@all")
    refused = Refusal("NOPERM No permissions to access a key")
    assert client.reply("XREADGROUP GROUP g STREAMS STREAMS secret >") == refused
    assert client.reply("XREADGROUP COUNT 1 GROUP STREAMS a STREAMS secret >") == refused
    assert client.reply("XREADGROUP BLOCK 1 GROUP g STREAMS COUNT 9 STREAMS secret >") == refused


def test_quick_forms_stay_in_use_and_are_checked() -> None:
    server = ServerBench()
    admin = server.connect()
    admin.reply("ACL SETUSER u on >pw ~a* +@all -get %G~g")
    client = logged_in(server)
    admin.reply("XGROUP CREATE a g 0 MKSTREAM")
    for _ in range(3):
        assert isinstance(client.reply("XADD a * k v"), bytes)
        assert client.reply("XADD b * k v") == Refusal("NOPERM No permissions to access a key")
        assert client.reply("XREADGROUP GROUP g c COUNT 1 STREAMS a >") is not None
        assert client.reply("XACK a g 1-1") == 0
        assert client.reply("XACK a h 1-1") == Refusal(
            "NOPERM No permissions to access a consumer group"
        )
        assert client.reply("GET a") == Refusal(
            "NOPERM User u has no permissions to run the 'get' command"
        )
        assert client.reply("PING") == "PONG"
    tallies = server.server.tallies.by_name
    for name in ("XADD", "XREADGROUP", "XACK", "PING"):
        assert (tallies[name].calls, tallies[name].quick_calls) == (3, 3), name
    assert tallies["GET"].calls == 0


def test_an_allowed_first_argument_allows_no_other_one() -> None:
    _, client = limited("on >pw +ping|hello")
    refused = Refusal("NOPERM User u has no permissions to run the 'ping' command")
    for _ in range(2):
        assert client.reply("PING hello") == b"hello"
        assert client.reply("PING secret") == refused
        assert client.reply("PING") == refused


def test_what_was_allowed_is_forgotten_with_the_rules() -> None:
    admin, client = limited("on >pw ~a +@all")
    for _ in range(2):
        assert isinstance(client.reply("XADD a * k v"), bytes)
    admin.reply("ACL SETUSER u -xadd")
    assert client.reply("XADD a * k v") == Refusal(
        "NOPERM User u has no permissions to run the 'xadd' command"
    )
    admin.reply("ACL SETUSER u +xadd resetkeys")
    assert client.reply("XADD a * k v") == Refusal("NOPERM No permissions to access a key")
    admin.reply("ACL SETUSER u allkeys allchannels +@all")
    assert client.session.permissions is None
    assert isinstance(client.reply("XADD b * k v"), bytes)


def test_exec_checks_each_command_again() -> None:
    admin, client = limited()
    for command in ("MULTI", "SET a 1", "GET a", "PUBLISH ch 1", "PING"):
        assert isinstance(client.reply(command), str)
    admin.reply("ACL SETUSER u -set resetkeys resetchannels")
    changed = (
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This"
        " command is no longer allowed for the following reason: "
    )
    assert client.reply("EXEC") == [
        Refusal(changed + "no permission to execute the command or subcommand"),
        Refusal(changed + "no permission to touch the specified keys"),
        Refusal(changed + "no permission to access one of the channels used as arguments"),
        "PONG",
    ]
    assert admin.reply("EXISTS a") == 0


def test_a_refused_command_breaks_the_transaction() -> None:
    _, client = limited()
    client.reply("MULTI")
    assert client.reply("GET b") == Refusal("NOPERM No permissions to access a key")
    assert client.reply("EXEC") == Refusal(
        "EXECABORT Transaction discarded because of previous errors."
    )


def test_a_blocked_command_ends_if_it_is_no_longer_allowed() -> None:
    admin, client = limited("on >pw ~* +@all")
    client.tell("BLPOP list 0")
    admin.reply("ACL SETUSER u -get")
    assert client.replies() == []
    admin.reply("ACL SETUSER u -blpop")
    assert client.replies() == [
        Refusal("NOPERM User u has no permissions to run the 'blpop' command")
    ]
    admin.reply("RPUSH list x")
    assert admin.reply("LLEN list") == 1
    assert client.reply("PING") == "PONG"


def test_subscribers_that_lose_a_channel_are_disconnected() -> None:
    server = ServerBench()
    admin = server.connect()
    admin.reply("ACL SETUSER u on >pw +@all &ch* &p*")
    clients = [logged_in(server) for _ in range(4)]
    for client, command in zip(
        clients, ("SUBSCRIBE ch1", "SUBSCRIBE p1", "PSUBSCRIBE p*", "SSUBSCRIBE p1"), strict=True
    ):
        client.tell(command)
    admin.reply("ACL SETUSER u resetchannels &ch*")
    assert [client.closed for client in clients] == [False, True, True, True]


def test_a_pattern_must_be_equal_to_a_rule() -> None:
    _, client = limited("on >pw +@all &ch*")
    assert client.reply("PSUBSCRIBE ch") == Refusal("NOPERM No permissions to access a channel")
    assert client.reply("PSUBSCRIBE ch*") == [b"psubscribe", b"ch*", 1]


def test_deleted_users_are_disconnected_and_the_caller_gets_its_reply() -> None:
    admin, client = limited("on >pw ~* &* +@all")
    other = client.session.server
    assert client.reply("ACL DELUSER u nobody") == 1
    assert client.closed
    assert not admin.closed
    assert b"u" not in other.users.by_name


def test_a_client_is_shown_with_its_user_and_can_be_killed_by_it() -> None:
    admin, client = limited()
    assert b" user=u " in client.reply("CLIENT INFO")
    assert client.reply("ACL WHOAMI") == b"u"
    assert admin.reply("CLIENT KILL USER nobody") == Refusal("ERR No such user 'nobody'")
    assert admin.reply("CLIENT KILL USER u") == 1
    assert client.closed


def test_reset_returns_to_the_default_user() -> None:
    admin, client = limited()
    assert client.reply("RESET") == "RESET"
    assert client.reply("ACL WHOAMI") == b"default"
    assert client.reply("GET b") is None
    admin.reply("CONFIG GET x")
    assert client.session.permissions is None


def test_a_disabled_user_cannot_log_in_and_its_clients_stay() -> None:
    admin, client = limited()
    admin.reply("ACL SETUSER u off")
    assert client.reply("PING") == "PONG"
    refused = Refusal("WRONGPASS invalid username-password pair or user is disabled.")
    assert client.reply("AUTH u pw") == refused
    assert client.reply("HELLO 3 AUTH u pw") == refused


def test_logins_try_every_password() -> None:
    admin, client = limited()
    admin.reply("ACL SETUSER u >second")
    assert client.reply("AUTH u second") == "OK"
    admin.reply("ACL SETUSER u <second")
    assert isinstance(client.reply("AUTH u second"), Refusal)
    admin.reply("ACL SETUSER u nopass")
    assert client.reply("AUTH u anything") == "OK"


def test_without_default_new_clients_must_log_in() -> None:
    admin, _ = limited()
    server = ServerBench()
    admin = server.connect()
    admin.reply("ACL SETUSER u on >pw ~* +@all")
    admin.reply("ACL SETUSER default off")
    stranger = server.connect()
    assert stranger.reply("PING") == Refusal("NOAUTH Authentication required.")
    assert stranger.reply("AUTH u pw") == "OK"
    assert stranger.reply("PING") == "PONG"
    waiting = server.connect()
    admin.reply("ACL SETUSER default on nopass")
    assert waiting.reply("PING") == "PONG"


def test_requirepass_is_the_password_of_default() -> None:
    server = ServerBench()
    server.server.users.set_password(b"secret")
    client = server.connect()
    assert client.reply("AUTH default secret") == "OK"
    [line] = client.reply("ACL LIST")
    assert line.startswith(b"user default on sanitize-payload #2bb80d537b1da3e38bd303")


@pytest.mark.parametrize("command", ["AUTH u", "HELLO 3", "QUIT", "RESET"])
def test_commands_that_log_in_are_always_allowed(command: str) -> None:
    _, client = limited("on >pw -@all")
    reply = client.reply(command)
    assert "NOPERM" not in str(reply)
    assert client.reply("PING") if command != "QUIT" else client.closed
