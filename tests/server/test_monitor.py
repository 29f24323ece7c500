"""MONITOR shows every command once it has run, but nothing that others must not see."""

from __future__ import annotations

from penstock.server.states import MONITORED
from tests.support.raw_redis import Refusal
from tests.support.sessions import Client, Hall


def watched() -> tuple[Hall, Client, Client]:
    """A server, somebody who watches, and somebody who is watched."""
    hall = Hall()
    watcher, client = hall.client(), hall.client()
    assert watcher.ask("MONITOR") == "OK"
    client.session.info.address = "10.0.0.1:5"
    return hall, watcher, client


def shown(watcher: Client) -> list[str]:
    """What was shown, without the time."""
    return [line.split(" ", 1)[1] for line in watcher.replies()]


def test_every_command_is_shown_with_its_time_place_and_words() -> None:
    _, watcher, client = watched()
    client.ask("SELECT 2")
    client.ask("XADD", "s", "1-1", b'a"\n', b"\xff")
    first, second = watcher.replies()
    # Once it has run the client is where it wanted to be, in Redis as well.
    assert first == '1700000000.000000 [2 10.0.0.1:5] "SELECT" "2"'
    assert second.endswith('[2 10.0.0.1:5] "XADD" "s" "1-1" "a\\"\\n" "\\xff"')


def test_a_transaction_is_shown_in_the_order_in_which_it_ran() -> None:
    _, watcher, client = watched()
    for line in ("MULTI", "XLEN s", "PING", "EXEC"):
        client.ask(line)
    words = [line.split("] ")[1] for line in shown(watcher)]
    assert words == ['"MULTI"', '"XLEN" "s"', '"PING"', '"EXEC"']


def test_what_administrators_do_is_not_shown() -> None:
    _, watcher, client = watched()
    client.ask("SLOWLOG LEN")
    assert shown(watcher) == []


def test_what_was_refused_before_it_ran_is_not_shown() -> None:
    _, watcher, client = watched()
    client.ask("XLEN")
    client.ask("NOSUCH")
    assert shown(watcher) == []


def test_who_watches_is_answered_before_being_shown_it() -> None:
    _, watcher, _ = watched()
    watcher.send("PING")
    pong, line = watcher.replies()
    assert pong == "PONG"
    assert line.endswith('"PING"')


def test_who_watches_may_not_touch_keys() -> None:
    _, watcher, _ = watched()
    refusal = Refusal("ERR Replica can't interact with the keyspace")
    assert watcher.ask("XLEN s") == refusal


def test_asking_twice_is_not_answered() -> None:
    _, watcher, _ = watched()
    watcher.send("MONITOR")
    assert watcher.replies() == []


def test_a_transaction_cannot_begin_to_watch() -> None:
    client = Hall().client()
    client.ask("MULTI")
    client.ask("MONITOR")
    refusal = Refusal("ERR MONITOR isn't allowed for DENY BLOCKING client")
    assert client.ask("EXEC") == [refusal]


def test_when_the_last_watcher_is_gone_nobody_is_watched() -> None:
    hall, watcher, client = watched()
    watcher.link.close()
    assert not hall.server.state & MONITORED
    assert client.ask("PING") == "PONG"
