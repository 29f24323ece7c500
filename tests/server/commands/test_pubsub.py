"""Publish/subscribe: recipients, order and confirmations."""

from __future__ import annotations

from penstock.engine import events
from tests.support.servers.connections import ServerBench, encoded


def resp2(*items: bytes | int | None) -> bytes:
    return _message(b"*", b"$-1\r\n", items)


def resp3(*items: bytes | int | None) -> bytes:
    return _message(b">", b"_\r\n", items)


def _message(kind: bytes, null: bytes, items: tuple[bytes | int | None, ...]) -> bytes:
    text = kind + b"%d\r\n" % len(items)
    for item in items:
        if item is None:
            text += null
        elif isinstance(item, int):
            text += b":%d\r\n" % item
        else:
            text += b"$%d\r\n%b\r\n" % (len(item), item)
    return text


def test_each_channel_is_confirmed_with_the_count_of_subscriptions() -> None:
    client = ServerBench().connect()
    assert client.ask("SUBSCRIBE a b a") == (
        resp2(b"subscribe", b"a", 1) + resp2(b"subscribe", b"b", 2) + resp2(b"subscribe", b"a", 2)
    )
    assert client.ask("PSUBSCRIBE x*") == resp2(b"psubscribe", b"x*", 3)
    assert client.ask("UNSUBSCRIBE a nowhere") == (
        resp2(b"unsubscribe", b"a", 2) + resp2(b"unsubscribe", b"nowhere", 2)
    )
    assert client.ask("UNSUBSCRIBE") == resp2(b"unsubscribe", b"b", 1)
    assert client.ask("PUNSUBSCRIBE") == resp2(b"punsubscribe", b"x*", 0)
    assert client.session.state == 0


def test_unsubscribing_from_nothing_is_confirmed_with_a_null() -> None:
    client = ServerBench().connect()
    assert client.ask("UNSUBSCRIBE") == resp2(b"unsubscribe", None, 0)
    assert client.ask("PUNSUBSCRIBE") == resp2(b"punsubscribe", None, 0)
    client.ask("HELLO 3")
    assert client.ask("UNSUBSCRIBE") == resp3(b"unsubscribe", None, 0)


def test_subscribers_by_name_come_before_subscribers_by_pattern() -> None:
    server = ServerBench()
    client, speaker = server.connect(), server.connect()
    client.ask("PSUBSCRIBE ne* *")
    client.ask("SUBSCRIBE news")
    assert speaker.run("PUBLISH", "news", "hi") == b":3\r\n"
    assert client.heard() == (
        resp2(b"message", b"news", b"hi")
        + resp2(b"pmessage", b"ne*", b"news", b"hi")
        + resp2(b"pmessage", b"*", b"news", b"hi")
    )
    assert speaker.run("PUBLISH", "old", "hi") == b":1\r\n"


def test_messages_arrive_in_the_order_of_publication() -> None:
    server = ServerBench()
    client, speaker = server.connect(), server.connect()
    client.ask("SUBSCRIBE c")
    speaker.send(encoded("PUBLISH", "c", "1") + encoded("PUBLISH", "c", "2"))
    assert client.heard() == resp2(b"message", b"c", b"1") + resp2(b"message", b"c", b"2")


def test_a_resp2_subscriber_may_only_use_pubsub_commands() -> None:
    client = ServerBench().connect()
    client.ask("SUBSCRIBE c")
    assert client.ask("XLEN s") == (
        b"-ERR Can't execute 'xlen': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
        b" are allowed in this context\r\n"
    )
    assert client.ask("CLIENT ID").startswith(b"-ERR Can't execute 'client|id': only")
    assert client.ask("PING") == resp2(b"pong", b"")
    assert client.ask("PING x") == resp2(b"pong", b"x")
    assert client.ask("UNSUBSCRIBE") == resp2(b"unsubscribe", b"c", 0)
    assert client.ask("PING") == b"+PONG\r\n"


def test_a_resp3_subscriber_may_use_all_commands() -> None:
    client = ServerBench().connect()
    client.ask("HELLO 3")
    assert client.ask("SUBSCRIBE c") == resp3(b"subscribe", b"c", 1)
    assert client.ask("XLEN s") == b":0\r\n"
    assert client.ask("PING") == b"+PONG\r\n"


def test_a_message_to_itself_comes_before_or_after_the_reply() -> None:
    message = resp3(b"message", b"c", b"x")
    for version, expected in (("7.0", message + b":1\r\n"), ("7.2", b":1\r\n" + message)):
        client = ServerBench(version).connect()
        client.ask("HELLO 3")
        client.ask("SUBSCRIBE c")
        assert client.ask("PUBLISH c x") == expected


def test_publish_in_a_transaction_is_delivered_by_exec() -> None:
    server = ServerBench()
    client, speaker = server.connect(), server.connect()
    client.ask("SUBSCRIBE c")
    speaker.ask("MULTI")
    assert speaker.ask("PUBLISH c x") == b"+QUEUED\r\n"
    assert client.heard() == b""
    assert speaker.ask("EXEC") == b"*1\r\n:1\r\n"
    assert client.heard() == resp2(b"message", b"c", b"x")


def test_a_transaction_may_subscribe() -> None:
    client = ServerBench("7.0").connect()
    for line in ("MULTI", "SUBSCRIBE a b", "PUBLISH a x", "PING"):
        client.ask(line)
    assert client.ask("EXEC") == (
        b"*3\r\n"
        + resp2(b"subscribe", b"a", 1)
        + resp2(b"subscribe", b"b", 2)
        + resp2(b"message", b"a", b"x")
        + b":1\r\n"
        + resp2(b"pong", b"")
    )


def test_pushes_reach_a_client_that_wants_no_replies() -> None:
    for version in ("7.0", "7.2"):
        client = ServerBench(version).connect()
        client.ask("HELLO 3")
        assert client.ask("CLIENT REPLY OFF") == b""
        assert client.ask("SUBSCRIBE c") == resp3(b"subscribe", b"c", 1)
        assert client.ask("PUBLISH c x") == resp3(b"message", b"c", b"x")
        assert client.ask("PING") == b""
        assert client.ask("CLIENT REPLY ON") == b"+OK\r\n"


def test_pubsub_counts_subscribers() -> None:
    server = ServerBench()
    one, two, asking = server.connect(), server.connect(), server.connect()
    one.ask("SUBSCRIBE news old")
    two.ask("SUBSCRIBE news")
    two.ask("PSUBSCRIBE n* o*")
    one.ask("PSUBSCRIBE n*")
    assert asking.ask("PUBSUB CHANNELS") == b"*2\r\n$4\r\nnews\r\n$3\r\nold\r\n"
    assert asking.ask("PUBSUB CHANNELS n?ws") == b"*1\r\n$4\r\nnews\r\n"
    assert asking.ask("PUBSUB NUMSUB news x") == b"*4\r\n$4\r\nnews\r\n:2\r\n$1\r\nx\r\n:0\r\n"
    assert asking.ask("PUBSUB NUMPAT") == b":2\r\n"
    assert asking.ask("PUBSUB CHANNELS a b") == (
        b"-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.\r\n"
    )
    assert asking.ask("PUBSUB HELP").startswith(b"*13\r\n+PUBSUB <subcommand> ")


def test_a_disconnected_client_is_unsubscribed() -> None:
    server = ServerBench()
    client, speaker = server.connect(), server.connect()
    client.ask("SUBSCRIBE c")
    client.ask("PSUBSCRIBE c*")
    client.ask("SSUBSCRIBE c")
    client.vanish()
    assert speaker.ask("PUBLISH c x") == speaker.ask("SPUBLISH c x") == b":0\r\n"
    assert speaker.ask("PUBSUB NUMPAT") == b":0\r\n"
    assert speaker.ask("PUBSUB SHARDCHANNELS") == b"*0\r\n"


# --- Shard channels -----------------------------------------------------------------------------------


def test_subscriptions_to_shard_channels_are_counted_separately() -> None:
    client = ServerBench().connect()
    client.ask("SUBSCRIBE a b")
    assert client.ask("SSUBSCRIBE a a") == (
        resp2(b"ssubscribe", b"a", 1) + resp2(b"ssubscribe", b"a", 1)
    )
    assert client.ask("PSUBSCRIBE x") == resp2(b"psubscribe", b"x", 3)
    assert client.ask("SUNSUBSCRIBE z") == resp2(b"sunsubscribe", b"z", 1)
    assert client.ask("SUNSUBSCRIBE") == resp2(b"sunsubscribe", b"a", 0)
    assert client.ask("SUNSUBSCRIBE") == resp2(b"sunsubscribe", None, 0)


def test_a_shard_channel_and_a_channel_of_the_same_name_are_two() -> None:
    server = ServerBench()
    client, other, speaker = server.connect(), server.connect(), server.connect()
    client.ask("SSUBSCRIBE c")
    other.ask("SUBSCRIBE c")
    other.ask("PSUBSCRIBE *")
    assert speaker.ask("SPUBLISH c x") == b":1\r\n"
    assert speaker.ask("PUBLISH c y") == b":2\r\n"
    assert client.heard() == resp2(b"smessage", b"c", b"x")
    assert other.heard() == (resp2(b"message", b"c", b"y") + resp2(b"pmessage", b"*", b"c", b"y"))


def test_a_resp2_client_with_a_shard_channel_may_only_use_pubsub_commands() -> None:
    client = ServerBench().connect()
    client.ask("SSUBSCRIBE c")
    for line in ("XLEN s", "SPUBLISH c x", "PUBSUB SHARDCHANNELS"):
        assert client.ask(line).startswith(b"-ERR Can't execute '"), line
    assert client.ask("SUBSCRIBE d") == resp2(b"subscribe", b"d", 1)
    assert client.ask("UNSUBSCRIBE") == resp2(b"unsubscribe", b"d", 0)
    assert client.ask("PING") == resp2(b"pong", b"")
    assert client.ask("SUNSUBSCRIBE c") == resp2(b"sunsubscribe", b"c", 0)
    assert client.session.state == 0


def test_a_shard_message_to_itself_comes_before_or_after_the_reply() -> None:
    message = resp3(b"smessage", b"c", b"x")
    for version, expected in (("7.0", message + b":1\r\n"), ("7.2", b":1\r\n" + message)):
        client = ServerBench(version).connect()
        client.ask("HELLO 3")
        assert client.ask("SSUBSCRIBE c") == resp3(b"ssubscribe", b"c", 1)
        assert client.ask("SPUBLISH c x") == expected


def test_a_transaction_may_publish_to_a_shard_channel_but_not_subscribe() -> None:
    server = ServerBench()
    client, speaker = server.connect(), server.connect()
    client.ask("SSUBSCRIBE c")
    for line in ("MULTI", "SSUBSCRIBE d", "SPUBLISH c x", "SUNSUBSCRIBE"):
        speaker.ask(line)
    assert speaker.ask("EXEC") == (
        b"*3\r\n-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client\r\n:1\r\n"
        + resp2(b"sunsubscribe", None, 0)
    )
    assert client.heard() == resp2(b"smessage", b"c", b"x")


def test_pubsub_counts_subscribers_of_shard_channels() -> None:
    server = ServerBench()
    one, two, asking = server.connect(), server.connect(), server.connect()
    one.ask("SSUBSCRIBE news old")
    two.ask("SSUBSCRIBE news")
    two.ask("SUBSCRIBE else")
    assert asking.ask("PUBSUB SHARDCHANNELS") == b"*2\r\n$4\r\nnews\r\n$3\r\nold\r\n"
    assert asking.ask("PUBSUB SHARDCHANNELS o*") == b"*1\r\n$3\r\nold\r\n"
    assert asking.reply("PUBSUB SHARDNUMSUB news else") == [b"news", 2, b"else", 0]
    assert asking.reply("PUBSUB NUMSUB news else") == [b"news", 0, b"else", 1]
    assert b"\r\npubsubshard_channels:2\r\n" in asking.ask("INFO stats")
    lines = asking.reply("CLIENT LIST TYPE pubsub")
    assert [line.split(b" ssub=")[1][:1] for line in bytes(lines).splitlines()] == [b"2", b"1"]


def test_reset_leaves_all_shard_channels() -> None:
    server = ServerBench()
    client, speaker = server.connect(), server.connect()
    client.ask("SSUBSCRIBE c")
    assert client.ask("RESET") == b"+RESET\r\n"
    assert client.session.state == 0
    assert speaker.ask("SPUBLISH c x") == b":0\r\n"


# --- Events and slow subscribers ----------------------------------------------------------------------


def test_keyspace_events_reach_subscribers() -> None:
    server = ServerBench()
    server.engine.context.event_kinds = events.parse_kinds_or_none("KEA") or 0
    client, writer = server.connect(), server.connect()
    client.ask("PSUBSCRIBE __key*@0__:*")
    writer.ask("XADD orders 1-1 k v")
    pattern = b"__key*@0__:*"
    assert client.heard() == (
        resp2(b"pmessage", pattern, b"__keyspace@0__:orders", b"xadd")
        + resp2(b"pmessage", pattern, b"__keyevent@0__:xadd", b"orders")
    )


def test_a_subscriber_that_does_not_read_is_disconnected_and_the_others_stay() -> None:
    server = ServerBench()
    slow, quick, speaker = server.connect(), server.connect(), server.connect()
    for client in (slow, quick):
        client.ask("SUBSCRIBE c")
    slow.transport.reads = False
    text = bytes(1 << 20)
    told = [speaker.run("PUBLISH", "c", text) for _ in range(40)]
    assert told[:32] == [b":2\r\n"] * 32
    assert told[-1] == b":1\r\n"
    assert slow.closed
    assert not quick.closed
    assert len(quick.heard()) > 40 << 20


def test_one_turn_cannot_pile_up_more_messages_than_the_limit() -> None:
    server = ServerBench()
    slow, speaker = server.connect(), server.connect()
    slow.ask("SUBSCRIBE c")
    slow.transport.reads = False
    speaker.ask("MULTI")
    for _ in range(40):
        speaker.run("PUBLISH", "c", bytes(1 << 20))
    speaker.put(encoded("EXEC"))
    assert slow.session.replies.unsent_bytes() == 0
    speaker.heard()
    assert slow.closed


def test_a_subscriber_over_the_soft_limit_is_disconnected_after_its_time() -> None:
    server = ServerBench()
    slow, speaker = server.connect(), server.connect()
    slow.ask("SUBSCRIBE c")
    slow.transport.reads = False
    for _ in range(9):
        speaker.run("PUBLISH", "c", bytes(1 << 20))
    server.advance(60_000)
    assert not slow.closed
    server.advance(2_000)
    assert slow.closed


def test_a_subscriber_that_catches_up_is_not_disconnected() -> None:
    server = ServerBench()
    slow, speaker = server.connect(), server.connect()
    slow.ask("SUBSCRIBE c")
    slow.transport.reads = False
    for _ in range(9):
        speaker.run("PUBLISH", "c", bytes(1 << 20))
    slow.transport.take()
    server.advance(62_000)
    assert not slow.closed
