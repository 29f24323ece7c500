"""PING, ECHO, SELECT, AUTH, HELLO, RESET, QUIT."""

from __future__ import annotations

import pytest

from penstock.server.session.states import REPLY_OFF, STRANGER
from tests.support.servers.connections import ServerBench, encoded

WRONG_PASSWORD = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
NOT_IN = b"-NOAUTH Authentication required.\r\n"


def test_a_stranger_that_does_not_read_is_disconnected() -> None:
    client = guarded().connect()
    client.transport.reads = False
    for _ in range(10_000):
        client.put(encoded("PING"))
        client.heard()
        if client.closed:
            break
    assert client.closed


def guarded(password: bytes = b"secret") -> ServerBench:
    server = ServerBench("7.0")
    server.server.users.set_password(password)
    return server


def greeting(client_id: int, protocol: int) -> bytes:
    head = b"%7" if protocol == 3 else b"*14"
    return (
        head
        + b"\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n"
        b":%d\r\n$2\r\nid\r\n:%d\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
        b"$7\r\nmodules\r\n*0\r\n" % (protocol, client_id)
    )


def test_ping_and_echo() -> None:
    client = ServerBench().connect()
    assert client.ask("PING") == b"+PONG\r\n"
    assert client.ask("ping hi") == b"$2\r\nhi\r\n"
    assert client.ask("PING a b") == b"-ERR wrong number of arguments for 'ping' command\r\n"
    assert client.run("ECHO", b"a\r\n\0") == b"$4\r\na\r\n\0\r\n"
    assert client.ask("ECHO") == b"-ERR wrong number of arguments for 'echo' command\r\n"


def test_each_client_selects_its_own_database() -> None:
    server = ServerBench()
    one, two = server.connect(), server.connect()
    assert one.ask("SELECT 15") == b"+OK\r\n"
    one.ask("XADD s 1-1 k v")
    assert two.ask("XLEN s") == b":0\r\n"
    assert two.ask("SELECT 16") == b"-ERR DB index is out of range\r\n"
    assert two.ask("SELECT x") == b"-ERR value is not an integer or out of range\r\n"
    beyond = b"-ERR value is out of range, value must between -2147483648 and 2147483647\r\n"
    assert [two.ask(f"SELECT {number}") for number in (2**31, -(2**63))] == [beyond, beyond]
    two.ask("SELECT 15")
    assert two.ask("XLEN s") == b":1\r\n"


def test_quit_gets_a_reply_and_commands_after_it_do_not_run() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    client.ask("MULTI")
    assert client.send(encoded("QUIT") + encoded("XADD", "s", "1-1", "k", "v")) == b"+OK\r\n"
    assert client.closed
    assert other.ask("XLEN s") == b":0\r\n"
    assert list(server.server.sessions.values()) == [other.session]


def test_without_a_password_every_client_is_the_default_user() -> None:
    client = ServerBench().connect()
    assert client.ask("AUTH x") == (
        b"-ERR AUTH <password> called without any password configured for the default user."
        b" Are you sure your configuration is correct?\r\n"
    )
    assert client.ask("AUTH default anything") == b"+OK\r\n"
    assert client.ask("AUTH someone anything") == WRONG_PASSWORD
    assert client.ask("AUTH a b c") == b"-ERR syntax error\r\n"


def test_a_stranger_may_only_authenticate() -> None:
    client = guarded().connect()
    assert client.ask("PING") == NOT_IN
    assert client.ask("CLIENT ID") == NOT_IN
    assert client.ask("AUTH wrong") == WRONG_PASSWORD
    assert client.ask("AUTH someone secret") == WRONG_PASSWORD
    assert client.ask("PING") == NOT_IN
    assert client.ask("AUTH secret") == b"+OK\r\n"
    assert client.ask("PING") == b"+PONG\r\n"
    assert client.ask("AUTH wrong") == WRONG_PASSWORD
    assert client.ask("PING") == b"+PONG\r\n"


def test_a_stranger_may_quit() -> None:
    client = guarded().connect()
    assert client.ask("QUIT") == b"+OK\r\n"
    assert client.closed


@pytest.mark.parametrize(
    "login", ["AUTH secret", "AUTH default secret", "HELLO 2 AUTH default secret"]
)
def test_the_small_limits_of_a_stranger_end_with_the_password(login: str) -> None:
    client = guarded().connect()
    client.ask(login)
    assert client.run("ECHO", bytes(20_000)) == b"$20000\r\n" + bytes(20_000) + b"\r\n"


def test_a_stranger_cannot_announce_large_arguments() -> None:
    client = guarded().connect()
    assert client.send(b"*2\r\n$4\r\nECHO\r\n$16385\r\n") == (
        b"-ERR Protocol error: unauthenticated bulk length\r\n"
    )
    assert client.closed


def test_hello_selects_the_protocol() -> None:
    client = ServerBench("7.0").connect()
    assert client.ask("HELLO") == greeting(1, 2)
    assert client.ask("HELLO 3") == greeting(1, 3)
    assert client.ask("HELLO") == greeting(1, 3)
    assert client.ask("HELLO 2 SETNAME me") == greeting(1, 2)
    assert client.ask("CLIENT GETNAME") == b"$2\r\nme\r\n"


def test_hello_refuses_and_changes_nothing() -> None:
    client = ServerBench().connect()
    refusals = {
        "HELLO 4": b"-NOPROTO unsupported protocol version\r\n",
        "HELLO 1": b"-NOPROTO unsupported protocol version\r\n",
        "HELLO x": b"-ERR Protocol version is not an integer or out of range\r\n",
        "HELLO 3 FOO": b"-ERR Syntax error in HELLO option 'FOO'\r\n",
        "HELLO 3 SETNAME": b"-ERR Syntax error in HELLO option 'SETNAME'\r\n",
        "HELLO 3 AUTH default": b"-ERR Syntax error in HELLO option 'AUTH'\r\n",
        "HELLO 3 SETNAME \x7f": (
            b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
        ),
        "HELLO 3 SETNAME me AUTH someone x": WRONG_PASSWORD,
    }
    for line, refusal in refusals.items():
        assert client.ask(line) == refusal
    assert not client.session.output.resp3
    assert client.ask("CLIENT GETNAME") == b"$-1\r\n"


def test_hello_admits_a_stranger_only_with_the_password() -> None:
    client = guarded().connect()
    assert client.ask("HELLO 3") == (
        b"-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO"
        b" AUTH <user> <pass> option can be used to authenticate the client and select the"
        b" RESP protocol version at the same time\r\n"
    )
    assert client.ask("HELLO 3 AUTH default wrong") == WRONG_PASSWORD
    assert client.ask("HELLO 3 SETNAME me AUTH default secret") == greeting(1, 3)
    assert client.ask("PING") == b"+PONG\r\n"


def test_reset_restores_the_initial_state() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    for line in (
        "HELLO 3 SETNAME me",
        "SELECT 3",
        "CLIENT NO-EVICT on",
        "SUBSCRIBE c",
        "PSUBSCRIBE c*",
    ):
        client.ask(line)
    client.ask("WATCH k")
    client.ask("MULTI")
    assert client.ask("RESET") == b"+RESET\r\n"
    assert client.session.state == 0
    assert server.engine.context.watching == 0
    assert other.ask("PUBLISH c x") == b":0\r\n"
    assert client.ask("EXEC") == b"-ERR EXEC without MULTI\r\n"
    assert client.ask("CLIENT GETNAME") == b"$-1\r\n"
    assert b" flags=N db=0 " in client.ask("CLIENT INFO")


def test_reset_turns_replies_on() -> None:
    client = ServerBench().connect()
    client.ask("CLIENT REPLY OFF")
    assert client.ask("RESET") == b"+RESET\r\n"
    assert not client.session.state & REPLY_OFF
    client.ask("CLIENT REPLY SKIP")
    assert client.ask("RESET") == b""
    assert client.ask("PING") == b"+PONG\r\n"


def test_reset_requires_authentication_again() -> None:
    client = guarded().connect()
    client.ask("AUTH secret")
    assert client.ask("RESET") == b"+RESET\r\n"
    assert client.session.state == STRANGER
    assert client.ask("PING") == NOT_IN
    assert client.send(b"*11\r\n") == b"-ERR Protocol error: unauthenticated multibulk length\r\n"
