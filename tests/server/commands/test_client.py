"""CLIENT: names, LIST, KILL, PAUSE, REPLY."""

from __future__ import annotations

import re

import pytest

from tests.support.servers.connections import ManualClient, ServerBench, encoded

SYNTAX = b"-ERR syntax error\r\n"
FIELDS_7_0 = [
    "id",
    "addr",
    "laddr",
    "fd",
    "name",
    "age",
    "idle",
    "flags",
    "db",
    "sub",
    "psub",
    "ssub",
    "multi",
    "qbuf",
    "qbuf-free",
    "argv-mem",
    "multi-mem",
    "rbs",
    "rbp",
    "obl",
    "oll",
    "omem",
    "tot-mem",
    "events",
    "cmd",
    "user",
    "redir",
    "resp",
]


def line_of(client: ManualClient) -> dict[str, str]:
    return lines(client.ask("CLIENT INFO"))[0]


def lines(reply: bytes) -> list[dict[str, str]]:
    text = re.sub(rb"^[$=]\d+\r\n(txt:)?|\r\n$", b"", reply).decode()
    return [dict(field.split("=", 1) for field in line.split(" ")) for line in text.splitlines()]


def test_client_ids_are_consecutive() -> None:
    server = ServerBench()
    assert [server.connect().ask("CLIENT ID") for _ in range(3)] == [
        b":1\r\n",
        b":2\r\n",
        b":3\r\n",
    ]


def test_a_name_has_no_spaces() -> None:
    client = ServerBench().connect()
    assert client.ask("CLIENT GETNAME") == b"$-1\r\n"
    assert client.ask("CLIENT SETNAME me") == b"+OK\r\n"
    for bad in (b"a b", b"a\n", b"\x7f", "ä".encode()):
        assert client.run("CLIENT", "SETNAME", bad) == (
            b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
        )
    assert client.ask("CLIENT GETNAME") == b"$2\r\nme\r\n"
    assert client.run("CLIENT", "SETNAME", "") == b"+OK\r\n"
    assert client.ask("CLIENT GETNAME") == b"$-1\r\n"


def test_a_line_has_the_fields_of_its_version() -> None:
    seven_two = [*FIELDS_7_0, "lib-name", "lib-ver"]
    multi = FIELDS_7_0.index("multi") + 1
    seven_four = [*FIELDS_7_0[:multi], "watch", *FIELDS_7_0[multi:], "lib-name", "lib-ver"]
    expected = {"7.0": FIELDS_7_0, "7.2": seven_two, "7.4": seven_four}
    expected["8.0"] = [*seven_four, "io-thread"]
    for version, fields in expected.items():
        assert list(line_of(ServerBench(version).connect())) == fields


def test_a_line_has_the_state_of_a_client() -> None:
    server = ServerBench()
    client, asking = server.connect(), server.connect()
    client.ask("HELLO 3 SETNAME me")
    client.ask("SELECT 2")
    client.ask("SUBSCRIBE a b")
    client.ask("PSUBSCRIBE c")
    client.ask("CLIENT SETINFO LIB-NAME redis-py")
    client.ask("CLIENT SETINFO lib-ver 5.0")
    client.ask("CLIENT NO-TOUCH on")
    client.ask("WATCH k l")
    client.ask("MULTI")
    client.ask("XADD k 1-1 f v")
    server.advance(2_500)
    line = lines(asking.ask("CLIENT LIST"))[0]
    assert (
        line.items()
        >= {
            "id": "1",
            "addr": "127.0.0.1:50001",
            "laddr": "127.0.0.1:6379",
            "name": "me",
            "age": "2",
            "idle": "2",
            "flags": "PxT",
            "db": "2",
            "sub": "2",
            "psub": "1",
            "multi": "1",
            "watch": "2",
            "cmd": "xadd",
            "user": "default",
            "resp": "3",
            "lib-name": "redis-py",
            "lib-ver": "5.0",
            "events": "r",
            "redir": "-1",
        }.items()
    )
    asking.ask("XADD k 1-1 f v")
    asking.ask("NONSENSE")


def test_a_line_has_the_last_command() -> None:
    server = ServerBench()
    client, asking = server.connect(), server.connect()

    def last() -> str:
        return lines(asking.ask("CLIENT LIST"))[0]["cmd"]

    assert last() == "NULL"
    client.ask("XLEN s")
    assert last() == "xlen"
    client.ask("CLIENT GETNAME")
    assert last() == "client|getname"
    client.ask("NONSENSE")
    assert last() == "NULL"


def test_a_line_shows_that_watched_keys_changed() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    client.ask("WATCH k")
    other.ask("XADD k 1-1 f v")
    assert line_of(client)["flags"] == "d"


def test_addresses_are_shown_as_redis_shows_them() -> None:
    server = ServerBench()
    sixth = server.connect({"peername": ("::1", 5, 0, 0), "sockname": ("::1", 6379, 0, 0)})
    local = server.connect({"peername": "", "sockname": "/tmp/p.sock"})
    assert (line_of(sixth)["addr"], line_of(sixth)["laddr"]) == ("[::1]:5", "[::1]:6379")
    line = line_of(local)
    assert (line["addr"], line["laddr"]) == ("/tmp/p.sock:0", "/tmp/p.sock:0")
    assert line["flags"] == "U"


def test_lists_can_be_filtered() -> None:
    server = ServerBench()
    one, two, three = (server.connect() for _ in range(3))
    two.ask("SUBSCRIBE c")

    def ids(line: str) -> list[str]:
        return [found["id"] for found in lines(one.ask(line))]

    assert ids("CLIENT LIST") == ["1", "2", "3"]
    assert ids("CLIENT LIST TYPE pubsub") == ["2"]
    assert ids("CLIENT LIST TYPE Normal") == ["1", "3"]
    assert ids("CLIENT LIST TYPE replica") == []
    assert ids("CLIENT LIST ID 3 9 1") == ["3", "1"]
    assert one.ask("CLIENT LIST TYPE x") == b"-ERR Unknown client type 'x'\r\n"
    assert one.ask("CLIENT LIST ID x") == b"-ERR Invalid client ID\r\n"
    assert one.ask("CLIENT LIST ID") == SYNTAX
    assert one.ask("CLIENT LIST what ever") == SYNTAX
    assert three.ask("PING") == b"+PONG\r\n"


def test_a_client_is_killed_by_its_address() -> None:
    server = ServerBench()
    one, two = server.connect(), server.connect()
    assert one.ask("CLIENT KILL 127.0.0.1:9") == b"-ERR No such client\r\n"
    assert one.ask("CLIENT KILL 127.0.0.1:50002") == b"+OK\r\n"
    assert two.closed
    assert one.ask("CLIENT KILL 127.0.0.1:50001") == b"+OK\r\n"
    assert one.closed
    assert server.server.sessions == {}


def test_clients_are_killed_by_filters() -> None:
    server = ServerBench()
    one, two, three, four = (server.connect() for _ in range(4))
    two.ask("SUBSCRIBE c")
    assert one.ask("CLIENT KILL TYPE pubsub ID 3") == b":0\r\n"
    assert one.ask("CLIENT KILL TYPE pubsub USER default") == b":1\r\n"
    assert one.ask("CLIENT KILL ID 3 LADDR 127.0.0.1:6379") == b":1\r\n"
    assert one.ask("CLIENT KILL ADDR 127.0.0.1:50001") == b":0\r\n"
    assert (two.closed, three.closed, four.closed) == (True, True, False)
    assert one.ask("CLIENT KILL SKIPME no TYPE normal") == b":2\r\n"
    assert one.closed
    assert four.closed


def test_an_invalid_filter_kills_no_client() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    refusals = {
        "ID 0": b"-ERR client-id should be greater than 0\r\n",
        "ID x": b"-ERR client-id should be greater than 0\r\n",
        "TYPE x": b"-ERR Unknown client type 'x'\r\n",
        "USER x": b"-ERR No such user 'x'\r\n",
        "SKIPME x": SYNTAX,
        "WHAT x": SYNTAX,
        "ADDR 127.0.0.1:50002 ID": SYNTAX,
        "MAXAGE 0": b"-ERR maxage should be greater than 0\r\n",
    }
    for words, refusal in refusals.items():
        assert client.ask(f"CLIENT KILL {words}") == refusal
    assert not other.closed


def test_old_connections_are_killed_by_maxage() -> None:
    server = ServerBench("7.4")
    server.connect()
    server.advance(10_000)
    young = server.connect()
    assert young.ask("CLIENT KILL MAXAGE 10") == b":1\r\n"
    assert ServerBench("7.2").connect().ask("CLIENT KILL MAXAGE 10") == SYNTAX


def test_a_killed_client_leaves_no_trace() -> None:
    server = ServerBench()
    one, two = server.connect(), server.connect()
    two.ask("WATCH k")
    two.ask("XREAD BLOCK 0 STREAMS s $")
    assert one.ask("CLIENT KILL ID 2") == b":1\r\n"
    assert server.engine.context.watching == 0
    assert server.engine.waiters.count == 0
    assert one.ask("XADD s 1-1 k v") == b"$3\r\n1-1\r\n"
    assert two.heard() == b""


def test_setinfo_and_no_touch_are_newer_than_7_0() -> None:
    old = ServerBench("7.0").connect()
    assert old.ask("CLIENT SETINFO LIB-NAME x") == (
        b"-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n"
    )
    assert old.ask("CLIENT NO-TOUCH on") == (
        b"-ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP.\r\n"
    )
    assert b"NO-TOUCH" not in old.ask("CLIENT HELP")
    new = ServerBench("7.2").connect()
    assert new.ask("CLIENT SETINFO LIB-NAME x") == b"+OK\r\n"
    assert new.ask("CLIENT SETINFO what x") == b"-ERR Unrecognized option 'what'\r\n"
    assert new.run("CLIENT", "SETINFO", "lib-ver", "a b") == (
        b"-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n"
    )
    assert b"NO-TOUCH" in new.ask("CLIENT HELP")


def test_replies_can_be_turned_off() -> None:
    client = ServerBench().connect()
    pipeline = [encoded("CLIENT", "REPLY", "OFF"), encoded("XADD", "s", "1-1", "k", "v")]
    pipeline += [encoded("NONSENSE"), encoded("XLEN"), encoded("CLIENT", "REPLY", "SKIP")]
    assert client.send(b"".join(pipeline)) == b""
    assert client.ask("CLIENT REPLY ON") == b"+OK\r\n"
    assert client.ask("XLEN s") == b":1\r\n"
    assert client.ask("CLIENT REPLY what") == SYNTAX


def test_one_reply_can_be_skipped() -> None:
    client = ServerBench().connect()
    skip = encoded("CLIENT", "REPLY", "SKIP")
    for command in (encoded("XLEN", "s"), encoded("NONSENSE"), encoded("PING")):
        assert client.send(skip + command + encoded("PING")) == b"+PONG\r\n"
    assert client.send(skip + skip + encoded("PING") + encoded("PING")) == b"+PONG\r\n"


def test_the_reply_of_a_blocked_command_can_be_skipped() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    client.ask("CLIENT REPLY SKIP")
    client.ask("XREAD BLOCK 0 STREAMS s $")
    other.ask("XADD s 1-1 k v")
    assert client.heard() == b""
    assert client.ask("PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("", b"*-1\r\n"),
        (" TIMEOUT", b"*-1\r\n"),
        (" error", b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"),
    ],
)
def test_a_blocked_client_can_be_unblocked(word: str, expected: bytes) -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    client.send(encoded("XREAD", "BLOCK", "0", "STREAMS", "s", "$") + encoded("PING"))
    assert other.ask(f"CLIENT UNBLOCK 1{word}") == b":1\r\n"
    assert client.heard() == expected + b"+PONG\r\n"
    assert other.ask(f"CLIENT UNBLOCK 1{word}") == b":0\r\n"
    assert server.engine.waiters.count == 0


def test_only_blocked_clients_can_be_unblocked() -> None:
    client = ServerBench().connect()
    assert client.ask("CLIENT UNBLOCK 99") == b":0\r\n"
    assert client.ask("CLIENT UNBLOCK x") == b"-ERR value is not an integer or out of range\r\n"
    assert client.ask("CLIENT UNBLOCK 1 what") == (
        b"-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n"
    )
    assert client.ask("CLIENT UNBLOCK 1 ERROR x") == (
        b"-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.\r\n"
    )


def test_a_pause_holds_all_commands_back_until_its_end() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    assert other.ask("CLIENT PAUSE 100") == b"+OK\r\n"
    assert client.send(encoded("PING") + encoded("PING", "2")) == b""
    assert other.ask("CLIENT UNPAUSE") == b""
    server.advance(99)
    assert client.heard() == b""
    server.advance(1)
    assert client.heard() == b"+PONG\r\n$1\r\n2\r\n"
    assert other.heard() == b"+OK\r\n"
    assert server.server.state == 0


def test_a_pause_of_writes_does_not_affect_reads() -> None:
    server = ServerBench()
    writer, speaker, trader, reader = (server.connect() for _ in range(4))
    trader.ask("MULTI")
    trader.ask("XADD s 2-1 k v")
    reader.ask("CLIENT PAUSE 1000 WRITE")
    assert writer.ask("XADD s 1-1 k v") == b""
    assert speaker.ask("PUBLISH c x") == b""
    assert trader.ask("EXEC") == b""
    assert reader.ask("XLEN s") == b":0\r\n"
    assert "b" in lines(reader.ask("CLIENT LIST"))[0]["flags"]
    assert reader.ask("CLIENT UNBLOCK 1") == b":0\r\n"
    assert reader.ask("CLIENT UNPAUSE") == b"+OK\r\n"
    assert writer.heard() == b"$3\r\n1-1\r\n"
    assert speaker.heard() == b":0\r\n"
    assert trader.heard() == b"*1\r\n$3\r\n2-1\r\n"


def test_a_second_pause_does_not_weaken_the_first() -> None:
    server = ServerBench()
    one, two, client = (server.connect() for _ in range(3))
    one.send(
        encoded("MULTI")
        + encoded("CLIENT", "PAUSE", "100")
        + encoded("CLIENT", "PAUSE", "5", "WRITE")
    )
    one.ask("EXEC")
    assert client.ask("PING") == b""
    server.advance(50)
    assert client.heard() == b""
    server.advance(50)
    assert client.heard() == b"+PONG\r\n"
    assert two.ask("PING") == b"+PONG\r\n"


def test_a_pause_of_zero_milliseconds_pauses_nothing() -> None:
    server = ServerBench()
    client = server.connect()
    assert client.ask("CLIENT PAUSE 0") == b"+OK\r\n"
    assert client.ask("PING") == b"+PONG\r\n"
    assert client.ask("CLIENT PAUSE -1") == b"-ERR timeout is negative\r\n"
    assert client.ask("CLIENT PAUSE x") == b"-ERR timeout is not an integer or out of range\r\n"
    assert client.ask("CLIENT PAUSE 1 what") == b"-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n"


def test_paused_clients_continue_in_the_order_in_which_they_stopped() -> None:
    server = ServerBench()
    one, two, three = (server.connect() for _ in range(3))
    three.ask("CLIENT PAUSE 10 WRITE")
    two.ask("XADD s * k 2")
    one.ask("XADD s * k 1")
    server.advance(10)
    values = re.findall(rb"\$1\r\n(\d)\r\n", three.ask("XRANGE s - +"))
    assert values == [b"2", b"1"]


def test_a_client_that_leaves_during_a_pause_runs_nothing() -> None:
    server = ServerBench()
    client, other = server.connect(), server.connect()
    other.ask("CLIENT PAUSE 10 WRITE")
    client.ask("XADD s 1-1 k v")
    client.vanish()
    server.advance(10)
    assert other.ask("XLEN s") == b":0\r\n"


def test_no_keys_are_tracked() -> None:
    client = ServerBench().connect()
    assert client.ask("CLIENT GETREDIR") == b":-1\r\n"
    assert client.reply("CLIENT TRACKINGINFO") == [
        *(b"flags", [b"off"], b"redirect", -1, b"prefixes", [])
    ]
    refusal = b"-ERR CLIENT CACHING can be called only when the client is in tracking mode with"
    assert client.ask("CLIENT CACHING YES").startswith(refusal)


def test_tracking_can_be_switched_off_but_not_on() -> None:
    client = ServerBench().connect()
    refusal = b"-ERR CLIENT TRACKING ON is not supported: this server does not track keys\r\n"
    options = ("", "OPTIN", "bcast PREFIX a PREFIX b", "REDIRECT 0 NOLOOP", "OPTOUT")
    for each in options:
        assert client.ask(f"CLIENT TRACKING ON {each}") == refusal
        assert client.ask(f"CLIENT TRACKING off {each}") == b"+OK\r\n"


@pytest.mark.parametrize("words", ["MAYBE", "ON FOO", "OFF PREFIX", "ON REDIRECT", "ON OPTIN x"])
def test_tracking_checks_its_words(words: str) -> None:
    assert ServerBench().connect().ask(f"CLIENT TRACKING {words}") == b"-ERR syntax error\r\n"
