"""The stream of a primary, command by command: what is applied, skipped or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.persist.rows import DATA_ROWS
from penstock.server.replication.applying import Applying, Foreign, StreamRefused
from tests.support.servers.connections import encoded
from tests.support.servers.durable_bench import DurableBench


class Stream:
    """A replica that skips foreign types, and what its primary sends."""

    def __init__(self, folder: Path) -> None:
        self.bench = DurableBench(folder, appendonly="no")
        feed = self.bench.server.replication.feed
        feed.begin()
        feed.follows = True
        self.applying = Applying(self.bench.server, feed, DATA_ROWS, lambda: None)
        self.foreign = self.applying.foreign = Foreign({(0, b"hash")})
        self.client = self.bench.connect()

    def send(self, *lines: str) -> None:
        self.applying.take(b"".join(encoded(*line.split()) for line in lines))


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return Stream(tmp_path)


def test_an_unknown_command_makes_its_key_foreign(stream: Stream) -> None:
    stream.send("HSET other f v", "RENAME other third", "SET a 1")
    assert stream.foreign.keys == {(0, b"hash"), (0, b"other"), (0, b"third")}
    assert stream.foreign.commands == 2
    assert stream.client.reply("GET a") == b"1"


def test_an_unknown_command_on_a_key_that_is_held_is_refused(stream: Stream) -> None:
    stream.send("SET a 1")
    with pytest.raises(StreamRefused, match="SETBIT a 7 1: unknown command"):
        stream.send("SETBIT a 7 1")


def test_a_command_is_not_skipped_because_a_value_is_named_like_a_foreign_key(
    stream: Stream,
) -> None:
    stream.send("SET text hash")
    with pytest.raises(StreamRefused, match=r"WRONGTYPE|wrong kind"):
        stream.send("RPUSH text hash")


def test_a_foreign_key_that_replaces_one_that_is_held_is_refused(stream: Stream) -> None:
    stream.send("SET a 1")
    for line in ("RENAME hash a", "COPY hash a REPLACE"):
        with pytest.raises(StreamRefused, match=line[:4]):
            stream.send(line)


def test_a_copy_of_a_foreign_key_is_foreign(stream: Stream) -> None:
    stream.send("COPY hash copied", "RENAME copied moved")
    assert (0, b"moved") in stream.foreign.keys


def test_deleted_keys_are_forgotten(stream: Stream) -> None:
    stream.send("DEL hash", "SET hash 1", "APPEND hash 2")
    assert stream.foreign.keys == set()
    assert stream.client.reply("GET hash") == b"12"


def test_a_stream_in_a_database_that_there_is_not_is_refused(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    feed = bench.server.replication.feed
    feed.history.database = 99
    with pytest.raises(StreamRefused, match="uses database 99, and there are 16"):
        Applying(bench.server, feed, DATA_ROWS, lambda: None)


def test_a_name_without_its_stream_is_left_out_and_any_other_wrong_name_is_refused(
    stream: Stream,
) -> None:
    stream.send("SET text v", "XIDMPRECORD gone p m 1-1", "XIDMPRECORD text p m 1-1")
    assert stream.client.reply("EXISTS gone") == 0
    with pytest.raises(StreamRefused, match="XIDMPRECORD text p m: Invalid stream ID"):
        stream.send("XIDMPRECORD text p m nonsense")


def test_the_stream_says_that_names_are_apart(stream: Stream) -> None:
    feed = stream.bench.server.replication.feed
    stream.send("PING")
    assert not feed.has_names_apart
    stream.send("PING names-apart")
    point = feed.point_or_none()
    assert point is not None
    assert point.names_apart
