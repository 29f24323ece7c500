"""Quick forms: whatever a client sends, they do what the full forms do."""

from __future__ import annotations

import random

import pytest

from penstock.engine.table import Command, Flags
from penstock.persist.aof.journal import Journal
from penstock.server.command_table import ROWS
from penstock.server.session.states import READ_ONLY
from tests.support.campaign import cases, seed
from tests.support.engine.engine_state import engine_state
from tests.support.random.session_commands import SessionWorld
from tests.support.servers.connections import ServerBench, encoded
from tests.support.servers.raw_redis import Refusal

ROUNDS = cases(400)
BATCHES = 40
LEVELS = ["7.0", "8.6", "8.10"]
EVENTS = [0, 0, 2**31 - 1]
# For the user of all clients. Half of them may do everything.
RULES = ["", "", "resetkeys %R~* %W~[a-s]*", "-xlen -get %G~g* %G~h"]


def without_quick(row: Command) -> Command:
    """The same row, for the full form only."""
    return Command(
        row.name,
        row.run,
        row.arity,
        Flags(row.flags),
        row.keys,
        row.summary,
        syntax=row.syntax,
        since=row.since,
        complexity=row.complexity,
        group=row.group,
        find_keys=row.find_keys,
        in_session=row.in_session,
        access=row.access,
        find_access=row.find_access,
        channels=row.channels,
        patterns=row.patterns,
        group_at=row.group_at,
        find_group=row.find_group,
    )


class Side:
    """A server and two clients, the second with RESP3."""

    def __init__(self, bench: ServerBench, rules: str, is_logged: bool, event_kinds: int) -> None:
        self.bench = bench
        self.journal = Journal()
        if is_logged:
            self.bench.engine.context.effects = self.journal
        self.bench.engine.context.event_kinds = event_kinds
        self.clients = [self.bench.connect(), self.bench.connect()]
        self.clients[0].run("ACL", "SETUSER", "default", *rules.split())
        self.clients[1].run("HELLO", "3")

    def send(self, client: int, data: bytes, cut: int) -> list[bytes]:
        """Send bytes in two parts; return what every client hears."""
        self.clients[client].put(data[:cut])
        self.clients[client].put(data[cut:])
        if self.clients[client].closed:
            self.clients[client] = self.bench.connect()
        return [other.heard() for other in self.clients]

    def state(self) -> object:
        """Everything that commands change."""
        tallies = self.bench.server.tallies.by_name
        counts = [(t.command.name, t.calls, t.failed, t.rejected) for t in tallies.values()]
        context = self.bench.engine.context
        lines = engine_state(self.bench.engine)
        return lines, self.journal.take(), context.dirty, counts, self.bench.engine.expired_keys


def two_sides(dice: random.Random, level: str) -> tuple[Side, Side]:
    """Two servers of the same kind; the second has no quick forms."""
    is_logged, event_kinds = dice.random() < 0.5, dice.choice(EVENTS)
    rules = dice.choice(RULES)
    quick = Side(ServerBench(level, list(ROWS)), rules, is_logged, event_kinds)
    rows = [without_quick(row) for row in ROWS]
    full = Side(ServerBench(level, rows), rules, is_logged, event_kinds)
    return quick, full


def quick_calls(side: Side, name: str) -> int:
    return side.bench.server.tallies.by_name[name].quick_calls


@pytest.mark.parametrize("number", range(ROUNDS))
def test_quick_and_full_forms_do_the_same(number: int) -> None:
    dice = random.Random(f"{seed()}/{number}")
    level = dice.choice(LEVELS)
    quick, full = two_sides(dice, level)
    world = SessionWorld(dice, level)
    for _ in range(BATCHES):
        client = dice.randrange(2)
        in_multi = quick.clients[client].session.transaction is not None
        commands = [world.command(in_multi, client == 1) for _ in range(dice.randrange(1, 12))]
        data = b"".join(world.data(words) for words in commands)
        cut = dice.randrange(len(data)) if dice.random() < 0.5 else len(data)
        assert quick.send(client, data, cut) == full.send(client, data, cut), commands
        assert quick.state() == full.state(), commands
        passed_ms = dice.choice([0, 0, 1, 5000])
        is_read_only = dice.random() < 0.1
        for side in (quick, full):
            side.bench.advance(passed_ms)
            side.bench.server.state &= ~READ_ONLY
            side.bench.server.state |= READ_ONLY if is_read_only else 0
    assert sum(tally.quick_calls for tally in quick.bench.server.tallies.by_name.values())
    assert not any(tally.quick_calls for tally in full.bench.server.tallies.by_name.values())


def test_a_read_only_server_reads_by_quick_forms() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("XADD s 1-1 k v")
    bench.server.state |= READ_ONLY
    assert client.reply("XLEN s") == 1
    assert client.reply("XADD s 2-1 k v") == Refusal(
        "READONLY You can't write against a read only replica."
    )
    tallies = bench.server.tallies.by_name
    assert tallies["XLEN"].quick_calls == 1
    assert tallies["XADD"].quick_calls == 1


class GroupWork:
    """Random commands of consumers that share two streams: they mostly succeed, with odd ones in between."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._last = 0
        self._makers = [
            *[self._add] * 4,
            *[self._read] * 6,
            *[self._acknowledge] * 4,
            *(self._look, self._change_group, self._remove),
        ]

    def words(self) -> list[str]:
        """One command."""
        return self._dice.choice(self._makers)()

    def _key(self) -> str:
        return self._dice.choice(["s", "s", "s", "t", "no stream"])

    def _group(self) -> str:
        return self._dice.choice(["g", "g", "g", "h", "none"])

    def _consumer(self) -> str:
        return self._dice.choice(["c", "c", "d", str(self._dice.randrange(20))])

    def _id(self) -> str:
        number = self._dice.randrange(max(1, self._last - 12), self._last + 2)
        return self._dice.choice(
            [f"{number}-0"] * 20 + [str(number), f"+{number}-0", "x", f"{2**64}-0"]
        )

    def _ids(self) -> list[str]:
        return [self._id() for _ in range(self._dice.choice([1, 1, 1, 3, 10]))]

    def _add(self) -> list[str]:
        self._last += 1
        fields = self._dice.choice(
            [["f", "v"], ["f", "17"], ["f", "v", "g", "x" * 90], ["k", "-1"]]
        )
        return ["XADD", self._dice.choice("st"), f"{self._last}-0", *fields]

    def _read(self) -> list[str]:
        dice = self._dice
        options = [
            *dice.choice([[], [], ["COUNT", "1"], ["count", str(dice.randrange(-1, 15))]]),
            *dice.choice([[], [], [], ["NOACK"], ["noAck"], ["BLOCK", "3000"], ["Block", "5"]]),
            *dice.choice(
                [[], [], [], [], [], ["MAXCOUNT", "3"], ["CLAIM", "0"], ["COUNT\0\0\0", "1"]]
            ),
        ]
        if dice.random() < 0.2:
            after = dice.choice(["0", "$", self._id()])
            return ["XREAD", *options, "STREAMS", self._key(), after]
        keys = [self._key()] if dice.random() < 0.9 else ["s", "t"]
        after = ">" if dice.random() < 0.9 else dice.choice(["0", self._id(), "$"])
        group = ["GROUP", self._group(), self._consumer()]
        head = [*group, *options] if dice.random() < 0.9 else [*options, *group]
        return ["XREADGROUP", *head, "STREAMS", *keys, *[after for _ in keys]]

    def _acknowledge(self) -> list[str]:
        return ["XACK", self._key(), self._group(), *self._ids()]

    def _look(self) -> list[str]:
        dice = self._dice
        start = dice.choice(["-", self._id(), "(" + self._id()])
        end = dice.choice(["+", self._id()])
        count = dice.choice([[], ["COUNT", str(dice.randrange(-1, 15))]])
        return dice.choice(
            [
                ["XLEN", self._key()],
                ["XRANGE", self._key(), start, end, *count],
                ["XREVRANGE", self._key(), end, start, *count],
            ]
        )

    def _change_group(self) -> list[str]:
        key, group = self._key(), self._group()
        return self._dice.choice(
            [
                ["XGROUP", "CREATE", key, group, "0", "MKSTREAM"],
                ["XGROUP", "CREATE", key, group, "$"],
                ["XGROUP", "SETID", key, group, self._id()],
                ["XGROUP", "DELCONSUMER", key, group, self._consumer()],
                ["XGROUP", "DESTROY", key, group],
                ["XCLAIM", key, group, self._consumer(), "0", *self._ids()],
            ]
        )

    def _remove(self) -> list[str]:
        key = self._key()
        return self._dice.choice(
            [
                ["XDEL", key, *self._ids()],
                ["XTRIM", key, "MAXLEN", "=", "30"],
                ["XTRIM", key, "MINID", self._id()],
                ["DEL", "t"],
                ["SET", "no stream", "x"],
                ["EXPIRE", key, "3"],
            ]
        )


@pytest.mark.parametrize("number", range(ROUNDS // 4))
def test_reads_of_groups_do_the_same_in_both_forms(number: int) -> None:
    dice = random.Random(f"{seed()}/groups/{number}")
    quick, full = two_sides(dice, dice.choice(LEVELS))
    work = GroupWork(dice)
    commands = [["XGROUP", "CREATE", key, "g", "0", "MKSTREAM"] for key in "st"]
    for _ in range(BATCHES):
        commands += [work.words() for _ in range(dice.randrange(1, 25))]
        data = b"".join(encoded(*words) for words in commands)
        client = dice.randrange(2)
        assert quick.send(client, data, len(data)) == full.send(client, data, len(data)), commands
        assert quick.state() == full.state(), commands
        passed_ms = dice.choice([0, 0, 1, 5000])
        quick.bench.advance(passed_ms)
        full.bench.advance(passed_ms)
        commands = []
    for name in ("XREADGROUP", "XACK"):
        assert quick_calls(quick, name), name
