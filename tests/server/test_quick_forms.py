"""Quick forms: whatever a client sends, they do what the full forms do."""

from __future__ import annotations

import random

import pytest

from penstock.engine.table import Command, Flags
from penstock.persist.aof.journal import Journal
from penstock.server.command_table import ROWS
from tests.support.campaign import cases, seed
from tests.support.engine.engine_state import engine_state
from tests.support.random.session_commands import SessionWorld
from tests.support.servers.connections import ServerBench

ROUNDS = cases(400)
BATCHES = 40
LEVELS = ["7.0", "8.6", "8.10"]
EVENTS = [0, 0, 2**31 - 1]


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
    )


class Side:
    """A server and two clients, the second with RESP3."""

    def __init__(self, level: str, rows: list[Command], is_logged: bool, event_kinds: int) -> None:
        self.bench = ServerBench(level, rows)
        self.journal = Journal()
        if is_logged:
            self.bench.engine.context.effects = self.journal
        self.bench.engine.context.event_kinds = event_kinds
        self.clients = [self.bench.connect(), self.bench.connect()]
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


@pytest.mark.parametrize("number", range(ROUNDS))
def test_quick_and_full_forms_do_the_same(number: int) -> None:
    dice = random.Random(f"{seed()}/{number}")
    level = dice.choice(LEVELS)
    is_logged, event_kinds = dice.random() < 0.5, dice.choice(EVENTS)
    quick = Side(level, list(ROWS), is_logged, event_kinds)
    full = Side(level, [without_quick(row) for row in ROWS], is_logged, event_kinds)
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
        quick.bench.advance(passed_ms)
        full.bench.advance(passed_ms)
    assert sum(tally.quick_calls for tally in quick.bench.server.tallies.by_name.values())
    assert not any(tally.quick_calls for tally in full.bench.server.tallies.by_name.values())
