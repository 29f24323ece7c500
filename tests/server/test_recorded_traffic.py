"""What real clients send takes the quick forms of commands. tools/record_traffic.py made the recording."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.engine.table import Command
from penstock.wire.parser import split_words
from tests.support.servers.connections import ManualClient, ServerBench

TESTS = Path(__file__).resolve().parent.parent
RECORDING = TESTS / "fixtures/traffic/clients.monitor"
PAGE = TESTS.parent / "docs/quick-forms.md"
LINE = re.compile(r"(\d+)\.(\d{3})\d* \[(\d+) (\S+)\] (.*)")
QUICK_SHARE_MIN = 0.95


class Replay:
    """Plays a recording on a server without sockets: the same clients, databases, order and times."""

    def __init__(self) -> None:
        self._bench = ServerBench()
        self._clients: dict[str, ManualClient] = {}

    def play(self, lines: list[str]) -> None:
        for line in lines:
            found = LINE.fullmatch(line)
            assert found is not None, line
            seconds, ms, database, address, words = found.groups()
            at_ms = int(seconds) * 1000 + int(ms)
            self._bench.advance(max(0, at_ms - self._bench.clock.at_ms))
            self._client(address, database).tell(*split_words(words.encode("latin-1")))

    def _client(self, address: str, database: str) -> ManualClient:
        if address not in self._clients:
            self._clients[address] = self._bench.connect()
            self._clients[address].run("SELECT", database)
        return self._clients[address]

    def stream_commands(self) -> list[tuple[Command, int, int]]:
        """Each stream command that was called: how often, and how often by its quick form."""
        tallies = self._bench.server.tallies.by_name.values()
        return [
            (tally.command, tally.calls, tally.quick_calls)
            for tally in tallies
            if tally.command.group == "stream" and tally.calls
        ]


@pytest.fixture(scope="module")
def counted() -> list[tuple[Command, int, int]]:
    replay = Replay()
    replay.play(RECORDING.read_text().splitlines())
    return replay.stream_commands()


def test_most_stream_commands_of_real_clients_take_the_quick_form(
    counted: list[tuple[Command, int, int]],
) -> None:
    calls = sum(calls for _, calls, _ in counted)
    shares = [f"{command.name}: {quick} of {calls}" for command, calls, quick in counted]
    assert sum(quick for _, _, quick in counted) >= QUICK_SHARE_MIN * calls, shares


def test_the_page_on_quick_forms_has_the_figures(counted: list[tuple[Command, int, int]]) -> None:
    rows = [f"| {command.name} | {calls} | {quick} |" for command, calls, quick in counted]
    table = "\n".join(["| command | calls | quick |", "| --- | --- | --- |", *rows, ""])
    assert table in PAGE.read_text(), f"docs/quick-forms.md must have this table:\n{table}"


def test_every_client_of_the_recording_is_there() -> None:
    text = RECORDING.read_text()
    sent = {line.split('"')[1] for line in text.splitlines()}
    assert {"XREADGROUP", "XACK", "MULTI"} <= sent  # redis-py
    assert '"COMMAND" "DOCS"' in text  # redis-cli
    assert '"PENSTOCK" "NODES"' in text  # the bulk reader
    assert '"PENSTOCK" "APPENDBATCH"' in text  # the Spark sink
