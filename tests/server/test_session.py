"""A session and its bytes: split anywhere, piled up, invalid, blocked, disconnected, failing."""

from __future__ import annotations

import logging

import pytest

from penstock.core.frame import Frame
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.server.command_table import ROWS
from penstock.server.net.output_limits import OutputLimit
from tests.support.servers.connections import RecordingLifecycle, ServerBench, encoded

BLOCKED_READ = encoded("XREAD", "BLOCK", "100", "STREAMS", "s", "$")
SCRIPT = b"".join(
    [
        encoded("PING"),
        encoded("XADD", "s", "1-1", "field", "value " * 50),
        b"XLEN s\r\n",
        b"\r\n",
        b'echo "a b\\x41"\n',
        b"*0\r\n",
        b"*-1\r\n",
        encoded("XRANGE", "s", "-", "+"),
        encoded("NONSENSE"),
        encoded("MULTI"),
        encoded("XADD", "s", "*", "k", ""),
        encoded("XLEN", "s"),
        encoded("EXEC"),
        encoded("HELLO", "3"),
        encoded("XREAD", "STREAMS", "s", "1-1"),
        encoded("SUBSCRIBE", "c"),
        encoded("PUBLISH", "c", "x"),
        encoded("QUIT"),
        encoded("PING"),
    ]
)


def test_commands_may_be_split_anywhere() -> None:
    whole = ServerBench().connect().send(SCRIPT)
    assert whole.endswith(b"+OK\r\n")
    for at in range(1, len(SCRIPT)):
        client = ServerBench().connect()
        assert client.send(SCRIPT[:at]) + client.send(SCRIPT[at:]) == whole, at


def test_bytes_may_arrive_one_by_one() -> None:
    whole = ServerBench().connect().send(SCRIPT)
    client = ServerBench().connect()
    assert b"".join(client.send(SCRIPT[at : at + 1]) for at in range(len(SCRIPT))) == whole


def test_two_clients_may_take_turns_in_the_middle_of_a_command() -> None:
    server = ServerBench()
    one, two = server.connect(), server.connect()
    first, second = encoded("ECHO", "one" * 100), encoded("ECHO", "two" * 200)
    heard = [b"", b""]
    for at in range(len(second)):
        heard[0] += one.send(first[at : at + 1])
        heard[1] += two.send(second[at : at + 1])
    assert heard == [b"$300\r\n" + b"one" * 100 + b"\r\n", b"$600\r\n" + b"two" * 200 + b"\r\n"]


def test_a_long_pipeline_is_answered_in_order() -> None:
    client = ServerBench().connect()
    count = 20_000
    commands = b"".join(encoded("ECHO", str(number)) for number in range(count))
    expected = b"".join(b"$%d\r\n%d\r\n" % (len(str(n)), n) for n in range(count))
    assert client.send(commands) == expected


def test_an_argument_larger_than_the_inbox_is_kept_until_it_is_complete() -> None:
    client = ServerBench().connect()
    text = bytes(range(256)) * 8192
    assert client.run("ECHO", text) == b"$%d\r\n%b\r\n" % (len(text), text)
    assert client.session.receiver.kept_bytes() == (0, 0)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*x\r\n", b"invalid multibulk length"),
        (b"*2147483648\r\n", b"invalid multibulk length"),
        (b"*1\r\nfoo\r\n", b"expected '$', got 'f'"),
        (b"*1\r\n\xff\r\n", b"expected '$', got '\xff'"),
        (b"*1\r\n$x\r\n", b"invalid bulk length"),
        (b"*1\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n$536870913\r\n", b"invalid bulk length"),
        (b'"abc\r\n', b"unbalanced quotes in request"),
    ],
)
def test_a_protocol_error_gets_a_reply_and_ends_the_connection(data: bytes, text: bytes) -> None:
    client = ServerBench().connect()
    replies = client.send(encoded("PING") + data + encoded("PING"))
    assert replies == b"+PONG\r\n-ERR Protocol error: " + text + b"\r\n"
    assert client.closed


@pytest.mark.parametrize(
    ("start", "text"),
    [(b"x", b"inline request"), (b"*", b"mbulk count string"), (b"*1\r\n$", b"bulk count string")],
)
def test_a_line_without_an_end_is_refused(start: bytes, text: bytes) -> None:
    client = ServerBench().connect()
    assert client.send(start) == b""
    assert client.send(b"1" * 70_000) == b"-ERR Protocol error: too big " + text + b"\r\n"
    assert client.closed


def test_commands_after_a_blocked_one_run_after_it() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    behind = encoded("XLEN", "s") + encoded("PING")
    assert client.send(BLOCKED_READ + behind[:-5]) == b""
    assert client.send(behind[-5:]) == b""
    other.ask("XADD s 1-1 k v")
    replies = client.heard()
    assert replies.startswith(b"*1\r\n*2\r\n$1\r\ns\r\n")
    assert replies.endswith(b":1\r\n+PONG\r\n")


def test_a_command_that_times_out_gets_a_reply_and_the_rest_runs() -> None:
    server = ServerBench()
    client = server.connect()
    client.send(BLOCKED_READ + encoded("PING") + BLOCKED_READ)
    server.advance(100)
    assert client.heard() == b"*-1\r\n+PONG\r\n"
    server.advance(100)
    assert client.heard() == b"*-1\r\n"


def test_a_blocked_client_that_leaves_is_served_nothing() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    other.ask("XGROUP CREATE s g $ MKSTREAM")
    client.ask("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    client.vanish()
    other.ask("XADD s 1-1 k v")
    assert other.ask("XPENDING s g").startswith(b"*4\r\n:0\r\n")
    assert server.engine.waiters.count == 0


def test_a_client_that_ends_its_input_gets_its_replies() -> None:
    server = ServerBench()
    client, slow = server.connect(), server.connect()
    client.put(encoded("PING") + encoded("ECHO", "x") + b"*1\r\n")
    client.end_input()
    assert client.heard() == b"+PONG\r\n$1\r\nx\r\n"
    assert client.closed
    slow.transport.reads = False
    slow.put(encoded("ECHO", bytes(100_000)))
    slow.end_input()
    assert slow.heard() == b""
    assert not slow.closed
    slow.transport.take()
    assert len(slow.heard()) == 100_011
    assert slow.closed


def test_a_blocked_client_that_ends_its_input_is_served_nothing() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    other.ask("XGROUP CREATE s g $ MKSTREAM")
    client.ask("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    client.end_input()
    other.put(encoded("XADD", "s", "1-1", "k", "v"))
    assert client.heard() == b""
    assert client.closed
    other.heard()
    assert other.ask("XPENDING s g").startswith(b"*4\r\n:0\r\n")


def test_a_client_over_the_query_limit_is_disconnected() -> None:
    server = ServerBench()
    server.server.query_bytes_max = 100_000
    waiting, unfinished, other = server.connect(), server.connect(), server.connect()
    waiting.send(BLOCKED_READ)
    waiting.send(encoded("PING") * 8_000)
    assert waiting.closed
    unfinished.send(b"*2\r\n$4\r\nECHO\r\n$200000\r\n" + bytes(100_001))
    assert unfinished.closed
    assert other.run("ECHO", bytes(50_000)).startswith(b"$50000\r\n")
    assert server.engine.waiters.count == 0


def test_a_client_that_leaves_its_replies_unread_is_disconnected() -> None:
    server = ServerBench()
    server.server.output_limits.normal = OutputLimit(5_000_000, 0, 0)
    slow, other = server.connect(), server.connect()
    slow.transport.reads = False
    for _ in range(10):
        slow.send(encoded("ECHO", bytes(1_000_000)))
    assert slow.closed
    assert len(slow.transport.unsent) == 0
    assert other.ask("PING") == b"+PONG\r\n"


def test_one_client_cannot_pile_up_more_replies_than_the_limit() -> None:
    server = ServerBench()
    server.server.output_limits.normal = OutputLimit(3_000_000, 0, 0)
    client = server.connect()
    client.run("XADD", "s", "1-1", "k", bytes(1_000_000))
    client.transport.reads = False
    assert client.send(encoded("XRANGE", "s", "-", "+") * 10) == b""
    assert client.closed


def _explode(context: Context, frame: Frame) -> None:
    raise ZeroDivisionError("a bug")


def breaking(name: str, flags: Flags) -> Command:
    return Command(name, _explode, 1, flags, NO_KEYS, "Fail.")


def test_a_bug_ends_one_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = ServerBench(rows=[*ROWS, breaking("BREAK", Flags.READ)])
    server.server.lifecycle = owner = RecordingLifecycle()
    client, other = server.connect(), server.connect()
    with caplog.at_level(logging.ERROR):
        replies = client.send(encoded("PING") + encoded("BREAK") + encoded("PING"))
    assert replies == b"+PONG\r\n-ERR internal error, the connection is closed\r\n"
    assert client.closed
    assert other.ask("PING") == b"+PONG\r\n"
    assert owner.broken == []
    assert "BREAK of client 127.0.0.1:50001 failed" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_bug_in_a_command_that_writes_stops_the_server(in_transaction: bool) -> None:
    server = ServerBench(rows=[*ROWS, breaking("BREAK", Flags.WRITE)])
    server.server.lifecycle = owner = RecordingLifecycle()
    client = server.connect()
    if in_transaction:
        client.ask("MULTI")
    client.ask("BREAK")
    if in_transaction:
        client.ask("EXEC")
    assert owner.broken == ["EXEC" if in_transaction else "BREAK"]
    assert client.closed


def test_a_bug_in_a_command_after_a_blocked_one_ends_one_connection() -> None:
    server = ServerBench(rows=[*ROWS, breaking("BREAK", Flags.READ)])
    client, other = server.connect(), server.connect()
    client.send(BLOCKED_READ + encoded("BREAK"))
    assert other.ask("XADD s 1-1 k v") == b"$3\r\n1-1\r\n"
    assert client.heard().endswith(b"-ERR internal error, the connection is closed\r\n")
    assert client.closed


def test_a_server_forgets_disconnected_clients() -> None:
    server = ServerBench()
    clients = [server.connect() for _ in range(3)]
    clients[1].vanish()
    assert list(server.server.sessions) == [1, 3]


def test_an_exec_that_is_rejected_ends_its_transaction() -> None:
    client = ServerBench().connect()
    client.ask("WATCH k")
    client.ask("SET k changed")
    client.ask("MULTI")
    text = b"-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n"
    assert client.ask("EXEC now") == text
    assert client.ask("EXEC") == b"-ERR EXEC without MULTI\r\n"
    assert client.ask("EXEC now") == text
    client.ask("MULTI")
    assert client.ask("EXEC") == b"*0\r\n"


def test_an_http_client_is_disconnected_before_the_body_is_read() -> None:
    bench = ServerBench()
    for head in (b"POST / HTTP/1.1\r\n", b"host: x\r\n"):
        browser = bench.connect()
        assert browser.send(head + b"\r\nSET pwned 1\r\n") == b""
        assert browser.closed
    assert bench.connect().reply("GET pwned") is None
