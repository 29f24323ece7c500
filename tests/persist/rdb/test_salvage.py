"""A refused value or command is left out; everything after it is still read."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.persist.aof.batch import encode_batch
from penstock.persist.aof.manifest import Manifest, load_manifest, save_manifest
from penstock.persist.check.files import check_path
from penstock.persist.check.repair import write_copy
from penstock.persist.check.report import LeftOut, Part, Report
from penstock.persist.disk import SystemDisk
from penstock.persist.rdb.reader import RdbReader
from tests.support.disk.data_files import OurFiles, log_file
from tests.support.engine.engine_state import engine_state
from tests.support.rdb.by_hand import NODE_KEY, group_bytes, producers_bytes, stream_bytes
from tests.support.rdb.whole_files import key, length, rdb_file, string
from tests.support.servers.raw_redis import encode

BAD_COUNTERS = length(1) + length(1700000000000) + b"\x00" * 6  # states one entry but none added
BAD = key(19, b"bad", stream_bytes(19, counters=BAD_COUNTERS))
STREAM = key(19, b"s", stream_bytes(19, groups=group_bytes(19, [NODE_KEY], [(b"a", [NODE_KEY])])))
TEXT = key(0, b"text", string(b"hello"))
HASH = key(4, b"h", b"\x01" + string(b"f") + string(b"v"))
LIBRARY = b"\xf5" + string(b"#!lua name=x\n")
EXPIRY = b"\xfc" + (4 * 10**12).to_bytes(8, "little")


def repaired(path: Path, out: Path, past_damage: bool = False) -> tuple[Report, Part]:
    """Check and repair; return the report, and the copy's part with its data."""
    report = check_path(SystemDisk(), str(path), past_damage=past_damage, keep_data=True)
    copy = write_copy(SystemDisk(), report, str(out))
    assert copy.check is not None
    assert copy.check.verdict.value == "sound"
    return report, check_path(SystemDisk(), str(out), keep_data=True).parts[0]


def keys_of(part: Part) -> list[bytes]:
    assert part.engine is not None
    return sorted(key for keyspace in part.engine.context.databases for key in keyspace.values)


def left_out(report: Report) -> list[LeftOut]:
    return report.parts[0].left_out


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ((BAD, STREAM, TEXT), [b"s", b"text"]),
        ((STREAM, BAD, TEXT), [b"s", b"text"]),
        ((STREAM, TEXT, BAD), [b"s", b"text"]),
        ((TEXT, EXPIRY, BAD, STREAM), [b"s", b"text"]),
    ],
)
def test_a_refused_value_is_named_and_all_others_are_kept(
    tmp_path: Path, parts: tuple[bytes, ...], names: list[bytes]
) -> None:
    data = rdb_file(*parts)
    path = tmp_path / "dump.rdb"
    path.write_bytes(data)
    report, copy = repaired(path, tmp_path / "out")
    assert keys_of(copy) == names
    (found,) = left_out(report)
    assert (found.offset, found.size) == (data.index(BAD), len(BAD))
    assert found.why == (
        "the key b'bad' in database 0, a stream: 0 entries were added, but 1 are there"
    )
    (file,) = report.files
    assert (file.verdict.value, file.keys) == ("damaged", 2)
    assert "the key b'bad'" in file.what
    assert data.index(BAD) < file.offset < data.index(BAD) + len(BAD)


def test_every_refused_value_is_named(tmp_path: Path) -> None:
    """Also a duplicate key, an unsupported type, and a library of functions."""
    path = tmp_path / "dump.rdb"
    path.write_bytes(rdb_file(BAD, LIBRARY, HASH, TEXT, TEXT, b"\xfe\x03", BAD, EXPIRY, STREAM))
    report, copy = repaired(path, tmp_path / "out")
    assert keys_of(copy) == [b"s", b"text"]
    whys = [found.why for found in left_out(report)]
    assert [why.partition(":")[0] for why in whys] == [
        "a library of functions, which penstock cannot keep",
        "the key b'bad' in database 0, a stream",
        "the key b'h' in database 0, a hash",
        "the key b'text' in database 0, a string",
        "the key b'bad' in database 3, a stream",
    ]
    assert copy.engine is not None
    assert dict(copy.engine.context.databases[3].expires.items()) == {b"s": 4 * 10**12}


@pytest.mark.parametrize("checksum", [True, False])
def test_a_changed_bit_costs_the_key_that_it_is_in(tmp_path: Path, checksum: bool) -> None:
    data = bytearray(rdb_file(STREAM, TEXT, checksum=checksum))
    data[data.index(b"temp") + 6] ^= 0xFF  # inside the node
    path = tmp_path / "dump.rdb"
    path.write_bytes(data)
    report, copy = repaired(path, tmp_path / "out")
    assert keys_of(copy) == [b"text"]
    value, rest = left_out(report)
    assert value.why.startswith("the key b's' in database 0, a stream: the node ")
    assert rest.why == "a value was refused, and the file has no valid checksum"


def test_keys_after_a_damaged_length_are_not_used(tmp_path: Path) -> None:
    """Bytes that look like keys may be the inside of a value."""
    planted = key(0, b"planted", string(b"x"))
    data = bytearray(rdb_file(TEXT, BAD, key(0, b"long", string(b"y" * 50 + planted * 2))))
    data[data.index(b"bad") + 3] = 2  # the stream claims one more node
    path = tmp_path / "dump.rdb"
    path.write_bytes(data)
    report, copy = repaired(path, tmp_path / "out")
    assert keys_of(copy) == [b"text"]
    (found,) = left_out(report)
    assert found.offset + found.size == len(data)


def with_a_bad_base(directory: Path) -> Path:
    """A base whose first key is refused, and an increment with commands on it and on other keys."""
    files = OurFiles(directory)
    files.do("XADD s 1-1 k v", "XGROUP CREATE s g 0", "SET text hello")
    files.rewrite()
    files.do("XADD s 2-1 k v", "XGROUP SETID s g 1-1", "SET other x", "APPEND text !")
    files.store.close()
    data = rdb_file(key(19, b"s", stream_bytes(19, counters=BAD_COUNTERS)), TEXT)
    log_file(directory, "base").write_bytes(data)
    disk, place = SystemDisk(), (files.layout.log_dir, files.layout.appendfilename)
    manifest = load_manifest(disk, *place)
    assert manifest.base is not None
    listed = Manifest(replace(manifest.base, size=len(data)), manifest.increments)
    save_manifest(disk, *place, listed)
    return directory


def test_a_log_is_read_on_after_a_refused_value_of_its_base(tmp_path: Path) -> None:
    directory = with_a_bad_base(tmp_path / "data")
    report, copy = repaired(directory, tmp_path / "out")
    verdicts = {file.role: file.verdict.value for file in report.files}
    assert (verdicts["base"], verdicts["increment"]) == ("damaged", "sound")
    value, refused = left_out(report)
    assert value.why.startswith("the key b's' in database 0, a stream: ")
    assert refused.why.startswith("XGROUP SETID s g: NOGROUP")
    assert copy.engine is not None
    # The stream has only the entries added after the base.
    assert [line for line in engine_state(copy.engine) if "node" not in line] == [
        *("0 'other'", "  string 'x'"),
        *("0 's'", "  stream length=1 last=2-1 added=1 max_deleted=0-0"),
        *("0 'text'", "  string 'hello!'"),
    ]


def test_a_refused_command_is_reported_and_later_ones_are_replayed(tmp_path: Path) -> None:
    lines = [b"SET a 1", b"SADD x y", b"XADD s 1-1 k v", b"XADD s 1-1 k w", b"SET b 2"]
    data = b""
    for line in lines:
        command = encode(line.split())
        data += encode_batch(command, 0, len(data)) + command
    path = tmp_path / "log"
    path.write_bytes(data)
    report, copy = repaired(path, tmp_path / "out")
    assert keys_of(copy) == [b"a", b"b", b"s"]
    unknown, repeated = left_out(report)
    assert data[unknown.offset :].startswith(b"*3\r\n$4\r\nSADD")
    assert unknown.why.startswith("SADD x y: ")
    assert data[repeated.offset :].startswith(b"*5\r\n$4\r\nXADD")
    assert "equal or smaller" in repeated.why
    assert report.files[0].offset == unknown.offset


def test_commands_after_a_snapshot_with_a_refused_value_are_replayed(tmp_path: Path) -> None:
    """The format of an older Redis: one file with a snapshot and then commands."""
    path = tmp_path / "old.aof"
    path.write_bytes(rdb_file(BAD, TEXT) + encode([b"SET", b"b", b"2"]))
    report, copy = repaired(path, tmp_path / "out")
    assert (report.files[0].kind, report.files[0].commands) == ("RDB+AOF", 1)
    assert keys_of(copy) == [b"b", b"text"]


@pytest.mark.parametrize("kind", [15, 19, 21, 26, 27])
def test_the_end_of_a_value_is_found_by_its_lengths(kind: int) -> None:
    groups = group_bytes(kind, [NODE_KEY], [(b"a", [NODE_KEY]), (b"b", [])], [NODE_KEY])
    producers = producers_bytes((b"p", [(b"a", "1-1"), (b"17", "2-2")]), (b"17", []), added=2**60)
    values = [
        (kind, stream_bytes(kind, groups=groups, producers=producers if kind >= 26 else b"")),
        (0, string(b"x" * 70_000)),
        (0, b"\xc2\x01\x02\x03\x04"),
        (0, b"\xc3\x03\x09abc"),  # not LZF
        (1, b"\x02" + string(b"a") + string(b"b")),
        (10, string(b"no ziplist")),
        (14, b"\x02" + string(b"no") + string(b"ziplists")),
        (18, b"\x02\x01" + string(b"plain") + b"\x02" + string(b"no listpack")),
    ]
    parts = [key(number, b"k%d" % n, value) for n, (number, value) in enumerate(values)]
    metadata = b"\xf3\x02\x00\x00\x00\x01\x02\x40\x99\x00\x00\x00\x00\x02\x05\x01x\x00"
    reader = RdbReader(io.BytesIO(rdb_file(metadata, *parts)), skip_foreign=True)
    extents = list(reader.extents())
    assert reader.skipped == [(9, "a module's metadata of a key")]
    assert [extent.end - extent.place for extent in extents] == [len(part) for part in parts]
    assert [extent.key for extent in extents] == [b"k%d" % n for n in range(len(parts))]
    assert reader.vouched
