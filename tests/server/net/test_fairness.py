"""Clients take turns: no pipeline blocks others until it is done, and replies keep their order."""

from __future__ import annotations

import random

import pytest

from penstock.engine.clock import ManualClock
from penstock.server.net.receiver import LARGE_SLICE_BYTES, SLICE_BYTES, SMALL_BYTES
from tests.support.engine.engines import START_MS
from tests.support.servers.connections import ManualClient, ServerBench, encoded


class TickingClock(ManualClock):
    """A clock that advances by a millisecond each time it is read, while `ticks` is set."""

    def __init__(self) -> None:
        super().__init__(START_MS)
        self.ticks = True

    def now_us(self) -> int:
        self.at_ms += self.ticks
        return super().now_us()


class TickingBench(ServerBench):
    """A server on which every command that is timed alone takes longer than a slice."""

    def __init__(self) -> None:
        self.ticking = TickingClock()
        super().__init__(clock=self.ticking)


def numbered(count: int) -> tuple[bytes, bytes]:
    """Commands that are timed one by one, and their replies."""
    asked = b"".join(encoded("KEYS", f"no-such-{number}") for number in range(count))
    return asked, b"*0\r\n" * count


def echoes(count: int) -> tuple[bytes, bytes]:
    asked = b"".join(encoded("ECHO", str(number)) for number in range(count))
    return asked, b"".join(b"$%d\r\n%d\r\n" % (len(str(n)), n) for n in range(count))


def turns_of(bench: ServerBench, client: ManualClient, replies: bytes) -> list[int]:
    """The bytes of replies per turn, until all have arrived."""
    turns: list[int] = []
    while sum(turns) < len(replies):
        before = len(client.transport.taken)
        bench.loop.step()
        turns.append(len(client.transport.taken) - before)
        assert len(turns) < 10_000
    return [count for count in turns if count]


def test_a_slow_pipeline_lets_others_have_their_turn() -> None:
    bench = TickingBench()
    greedy, other = bench.connect(), bench.connect()
    asked, replies = numbered(50)
    greedy.put(asked)
    bench.loop.step()
    before = len(greedy.transport.taken)
    assert before < len(replies)
    other.put(encoded("PING"))
    bench.loop.step()
    assert other.transport.taken == b"+PONG\r\n"
    assert len(greedy.transport.taken) <= before + 2 * len(b"*0\r\n")
    assert greedy.heard() == replies


def test_one_turn_reads_one_slice_of_a_socket() -> None:
    bench = ServerBench()
    greedy = bench.connect()
    asked, replies = echoes(20_000)
    greedy.put(asked)
    assert len(greedy.transport.incoming) == len(asked) - SLICE_BYTES
    turns = turns_of(bench, greedy, replies)
    assert len(turns) >= len(asked) // SLICE_BYTES
    assert greedy.heard() == replies


def test_clients_with_pipelines_advance_together() -> None:
    bench = TickingBench()
    clients = [bench.connect() for _ in range(3)]
    asked, replies = numbered(40)
    for client in clients:
        client.put(asked)
    while not all(len(client.transport.taken) == len(replies) for client in clients):
        bench.loop.step()
        done = [len(client.transport.taken) for client in clients]
        assert max(done) - min(done) <= 2 * len(b"*0\r\n"), done
    assert [client.heard() for client in clients] == [replies] * 3


def test_a_client_with_waiting_commands_is_not_read_from() -> None:
    bench = TickingBench()
    client = bench.connect()
    asked, replies = numbered(30)
    client.put(asked)
    assert client.connection.runner.has_more
    assert client.transport.paused
    client.put(encoded("PING"))
    assert client.transport.incoming == encoded("PING")
    assert client.heard() == replies + b"+PONG\r\n"
    assert not client.transport.paused


def test_a_client_that_ends_its_input_after_a_pipeline_gets_all_replies() -> None:
    bench = TickingBench()
    client = bench.connect()
    asked, replies = numbered(30)
    client.put(asked)
    client.end_input()
    assert client.heard() == replies
    assert client.closed


def test_a_command_that_blocks_in_a_pipeline_stops_it_until_it_is_served() -> None:
    bench = TickingBench()
    client, other = bench.connect(), bench.connect()
    asked, replies = numbered(10)
    client.put(asked + encoded("XREAD", "BLOCK", "0", "STREAMS", "s", "$") + asked)
    assert client.heard() == replies
    other.ask("XADD s 1-1 k v")
    heard = client.heard()
    assert heard.startswith(b"*1\r\n*2\r\n$1\r\ns\r\n")
    assert heard.endswith(replies)


def test_a_client_killed_between_slices_runs_nothing_more() -> None:
    bench = TickingBench()
    client, other = bench.connect(), bench.connect()
    client.put(b"".join(encoded("SET", f"k{n}", "v") + encoded("KEYS", "x") for n in range(50)))
    bench.loop.step()
    other.put(encoded("CLIENT", "KILL", "ID", str(client.session.id)))
    assert other.heard() == b":1\r\n"
    assert client.closed
    size = other.reply("DBSIZE")
    assert isinstance(size, int)
    assert size < 50


def test_a_clock_that_is_set_back_ends_a_slice_and_nothing_else() -> None:
    bench = TickingBench()
    client = bench.connect()
    bench.ticking.ticks = False
    asked, replies = numbered(20)
    client.put(asked[: len(asked) // 2])
    bench.ticking.at_ms -= 10_000
    assert client.send(asked[len(asked) // 2 :]) == replies


@pytest.mark.parametrize("seed", range(3))
def test_any_pipeline_in_any_pieces_is_answered_as_in_one_turn(seed: int) -> None:
    dice = random.Random(seed)
    commands = []
    for number in range(300):
        size = dice.choice([1, 10, 1000, SMALL_BYTES, SLICE_BYTES, LARGE_SLICE_BYTES])
        commands.append(
            encoded("ECHO", b"%d." % number + bytes(dice.randrange(size)))
            if dice.random() < 0.3
            else encoded("KEYS", str(number))
        )
    asked = b"".join(commands)
    calm = ServerBench().connect().send(asked)
    bench = TickingBench()
    clients = [bench.connect(), bench.connect()]
    places = [0, 0]
    while min(places) < len(asked):
        at = dice.randrange(2)
        piece = asked[places[at] : places[at] + dice.choice([1, 100, 5000, 100_000])]
        places[at] += len(piece)
        clients[at].put(piece)
        if dice.random() < 0.5:
            bench.loop.step()
    assert [client.heard() for client in clients] == [calm, calm]
    assert [client.session.receiver.kept_bytes() for client in clients] == [(0, 0), (0, 0)]


def test_many_commands_after_a_blocked_one_run_in_slices() -> None:
    bench = TickingBench()
    client, other = bench.connect(), bench.connect()
    asked, replies = numbered(5000)
    client.send(encoded("XREAD", "BLOCK", "0", "STREAMS", "s", "$") + asked)
    kept, room = client.session.receiver.kept_bytes()
    assert kept == len(asked)
    assert room <= 2 * kept
    other.ask("XADD s 1-1 k v")
    assert client.heard().endswith(replies)
    assert client.session.receiver.kept_bytes() == (0, 0)
