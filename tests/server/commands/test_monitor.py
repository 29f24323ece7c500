"""MONITOR shows every command after it has run, without secrets."""

from __future__ import annotations

from penstock.server.session.states import MONITORED
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal


def watched() -> tuple[ServerBench, ManualClient, ManualClient]:
    """A server, a monitor and another client."""
    bench = ServerBench()
    watcher, client = bench.connect(), bench.connect()
    assert watcher.reply("MONITOR") == "OK"
    client.session.info.address = "10.0.0.1:5"
    return bench, watcher, client


def shown(watcher: ManualClient) -> list[str]:
    """The lines, without the time."""
    return [line.split(" ", 1)[1] for line in watcher.replies()]


def test_every_command_is_shown_with_time_address_and_arguments() -> None:
    _, watcher, client = watched()
    client.reply("SELECT 2")
    client.reply("XADD", "s", "1-1", b'a"\n', b"\xff")
    first, second = watcher.replies()
    # A line has the database after the command, as in Redis.
    assert first == '1700000000.000000 [2 10.0.0.1:5] "SELECT" "2"'
    assert second.endswith('[2 10.0.0.1:5] "XADD" "s" "1-1" "a\\"\\n" "\\xff"')


def test_a_transaction_is_shown_in_the_order_in_which_it_ran() -> None:
    _, watcher, client = watched()
    for line in ("MULTI", "XLEN s", "PING", "EXEC"):
        client.reply(line)
    words = [line.split("] ")[1] for line in shown(watcher)]
    assert words == ['"MULTI"', '"XLEN" "s"', '"PING"', '"EXEC"']


def test_administration_commands_are_not_shown() -> None:
    _, watcher, client = watched()
    client.reply("SLOWLOG LEN")
    assert shown(watcher) == []


def test_rejected_commands_are_not_shown() -> None:
    _, watcher, client = watched()
    client.reply("XLEN")
    client.reply("NOSUCH")
    assert shown(watcher) == []


def test_monitor_gets_its_reply_first() -> None:
    _, watcher, _ = watched()
    watcher.tell("PING")
    pong, line = watcher.replies()
    assert pong == "PONG"
    assert line.endswith('"PING"')


def test_a_monitor_may_not_touch_keys() -> None:
    _, watcher, _ = watched()
    refusal = Refusal("ERR Replica can't interact with the keyspace")
    assert watcher.reply("XLEN s") == refusal


def test_a_second_monitor_gets_no_reply() -> None:
    _, watcher, _ = watched()
    watcher.tell("MONITOR")
    assert watcher.replies() == []


def test_monitor_is_refused_in_a_transaction() -> None:
    client = ServerBench().connect()
    client.reply("MULTI")
    client.reply("MONITOR")
    refusal = Refusal("ERR MONITOR isn't allowed for DENY BLOCKING client")
    assert client.reply("EXEC") == [refusal]


def test_when_the_last_monitor_is_gone_nothing_is_shown() -> None:
    bench, watcher, client = watched()
    watcher.vanish()
    assert not bench.server.state & MONITORED
    assert client.reply("PING") == "PONG"


def test_a_monitor_that_skips_a_reply_gets_no_lines_until_its_next_command() -> None:
    _, watcher, client = watched()
    watcher.tell("CLIENT REPLY SKIP")
    assert len(watcher.replies()) == 1  # the line of CLIENT itself
    client.reply("PING")
    watcher.tell("PING")
    assert watcher.replies() == []
    client.reply("PING")
    assert len(shown(watcher)) == 1
