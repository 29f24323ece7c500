"""Streams from payloads and files: recognized kinds, contents, and damage."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.stream import Stream
from penstock.errors import CorruptData
from penstock.inspect import files
from penstock.inspect.files import FileKind, kind_or_none, raw_stream, streams_of
from penstock.inspect.node_map import node_map
from penstock.inspect.stored import (
    RawNode,
    dump_nodes,
    nodes_question,
    parse_nodes_reply,
    stream_of,
)
from penstock.persist.rdb.dump import dump_value
from penstock.persist.rdb.reader import RdbItem
from tests.inspect.test_node_map import streams
from tests.inspect.test_segments import assert_covers
from tests.support.disk.data_files import log_file, write_ours
from tests.support.engine.streams import sid
from tests.support.engine.streams import stream_of as stream_with
from tests.support.rdb.whole_files import write_items

VERSION = 10


def small() -> Stream:
    return stream_with("1-0", "2-0", "3-0", "4-0")


@given(streams(), st.booleans())
def test_a_payload_of_dump_has_the_nodes_of_the_stream(stream: Stream, compress: bool) -> None:
    assert dump_nodes(dump_value(stream, VERSION, compress)) == (stream_of(stream), [])


def test_a_limit_takes_the_first_nodes() -> None:
    stream = stream_with(*(f"{n}-0" for n in range(1, 9)))
    assert stream_of(stream, 2) == stream_of(stream)[:2]
    raw = raw_stream("here", files.FoundStream(0, b"s", stream), 2)
    assert (len(raw.nodes), raw.nodes_total, raw.length, raw.is_whole) == (2, 3, 8, False)


def test_every_damaged_payload_is_reported_or_readable() -> None:
    payload = dump_value(small(), VERSION, compress=False)
    for place in range(len(payload)):
        for damaged in (
            payload[:place],
            payload[:place] + bytes([payload[place] ^ 0x41]) + payload[place + 1 :],
        ):
            try:
                _, notes = dump_nodes(damaged)
            except CorruptData:
                continue  # no stream at all
            assert notes, place


def test_a_payload_of_another_type_is_refused() -> None:
    with pytest.raises(CorruptData, match=r"holds type 0 \(not a stream\)"):
        dump_nodes(dump_value(b"text", VERSION))


def test_a_reply_of_penstock_nodes_is_parsed() -> None:
    assert nodes_question(b"s", b"(1-0", 3) == ("PENSTOCK", "NODES", b"s", b"(1-0", "+", "COUNT", 3)
    assert parse_nodes_reply([b"(1-0", [[b"1-0", b"x"]]]) == (b"(1-0", [RawNode(sid("1-0"), b"x")])
    assert parse_nodes_reply([None, []]) == (None, [])


@pytest.mark.parametrize(
    "reply",
    [None, b"x", [], [1, []], [None, 1], [None, [1]], [None, [[b"a"]]], [None, [[b"a-b", b""]]]],
    ids=str,
)
def test_any_other_reply_is_refused(reply: object) -> None:
    with pytest.raises(CorruptData, match="not a reply of PENSTOCK NODES"):
        parse_nodes_reply(reply)


def test_the_kind_of_a_file_is_recognized(tmp_path: Path) -> None:
    data = write_ours(tmp_path / "data")
    (node, *_) = stream_of(small())
    (tmp_path / "a.bin").write_bytes(node.data)
    (tmp_path / "b.bin").write_bytes(dump_value(small(), VERSION))
    (tmp_path / "c.bin").write_bytes(b"something else")
    (tmp_path / "d.bin").write_bytes(b"")
    # A log with an RDB preamble begins like a snapshot.
    (tmp_path / "old.aof").write_bytes((data / "dump.rdb").read_bytes())
    found = {
        name: kind_or_none(str(tmp_path / name))
        for name in ("data", "data/dump.rdb", "a.bin", "b.bin", "c.bin", "d.bin", "old.aof")
    }
    assert found == {
        "data": FileKind.AOF,
        "data/dump.rdb": FileKind.RDB,
        "a.bin": FileKind.LISTPACK,
        "b.bin": FileKind.DUMP,
        "c.bin": None,
        "d.bin": None,
        "old.aof": FileKind.AOF,
    }
    assert kind_or_none(str(log_file(data, "incr"))) is FileKind.AOF


def test_snapshot_and_log_have_the_same_stream(tmp_path: Path) -> None:
    data = write_ours(tmp_path / "data")
    (snapshot,) = streams_of(str(data / "dump.rdb"), FileKind.RDB).streams
    for place in (data, data / "appendonlydir"):
        (log,) = streams_of(str(place), FileKind.AOF).streams
        assert (log.database, log.key) == (snapshot.database, snapshot.key) == (0, b"s")
        assert stream_of(log.stream) == stream_of(snapshot.stream)


def test_a_damaged_node_of_a_snapshot_can_be_inspected(tmp_path: Path) -> None:
    stream = small()
    items = [RdbItem(0, b"s", None, stream), RdbItem(0, b"t", None, b"text")]
    whole = write_items(items, VERSION, compress=False)
    (node, *_) = stream_of(stream)
    place = whole.index(node.data) + len(node.data) - 3  # inside the last entry
    path = tmp_path / "dump.rdb"
    path.write_bytes(whole[:place] + b"\x7e" + whole[place + 1 :])
    contents = streams_of(str(path), FileKind.RDB)
    assert [found.key for found in contents.streams] == [b"s"]
    assert "checksum" in contents.notes[0]
    assert stream_of(contents.streams[0].stream)[0].data != node.data


def test_a_truncated_snapshot_has_the_streams_before_its_end(tmp_path: Path) -> None:
    whole = write_items([RdbItem(0, name, None, small()) for name in (b"s", b"t")], VERSION)
    path = tmp_path / "dump.rdb"
    path.write_bytes(whole[: len(whole) - 40])
    contents = streams_of(str(path), FileKind.RDB)
    assert [found.key for found in contents.streams] == [b"s"]
    assert contents.notes
    path.write_bytes(whole[:30])
    with pytest.raises(CorruptData):
        streams_of(str(path), FileKind.RDB)


def test_every_damaged_snapshot_is_an_error_or_a_note(tmp_path: Path) -> None:
    whole = write_items([RdbItem(0, b"s", None, small())], VERSION, compress=False)
    path = tmp_path / "dump.rdb"
    dice = Random(6)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= dice.randrange(1, 256)
        damaged[dice.randrange(len(whole))] ^= dice.randrange(256)
        path.write_bytes(damaged)
        try:
            contents = streams_of(str(path), FileKind.RDB)
        except CorruptData:
            continue
        for found in contents.streams:
            for node in raw_stream("", found, 0).nodes:
                assert_covers(node.data, node_map(node.data, node.master).segments)


def test_a_wrong_size_is_not_taken_for_a_listpack(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<I", 9) + b"\x00\x00\xff")
    assert kind_or_none(str(path)) is None
