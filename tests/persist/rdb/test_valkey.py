"""Files and payloads of Valkey 9: what it shares with Redis 7.2 is read, the rest is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.stream import Stream
from penstock.engine import compat
from penstock.errors import CorruptData
from penstock.inspect.files import FileKind, kind_or_none
from penstock.persist.aof.journal import Journal
from penstock.persist.check.files import check_path
from penstock.persist.check.repair import write_copy
from penstock.persist.disk import SystemDisk
from penstock.persist.offline import streams_in
from tests.support.rdb.by_hand import NODE_KEY, group_bytes, stream_bytes
from tests.support.rdb.dump_payloads import DumpBench, sealed
from tests.support.rdb.whole_files import crc_of, key, reader_of, string
from tests.support.servers.raw_redis import Refusal, encode

GROUPS = group_bytes(21, [NODE_KEY], [(b"a", [NODE_KEY])])
STREAM = stream_bytes(21, groups=GROUPS)
LIST = b"\x01\x02" + string(bytes.fromhex("0a000000 0100 8161 02 ff"))
# A hash whose fields expire: type 22 in Valkey. Redis used the number for another form of hash.
HASH = (
    b"\x02" + string(b"f") + string(b"v") + b"\x00" * 8 + string(b"g") + string(b"w") + b"\xff" * 8
)
SLOT_IMPORT = b"\xf3" + string(b"n" * 40) + b"\x02" + b"\x01\x05" + b"\x40\x64\x40\xc8"
PARTS = (key(21, b"s", STREAM), key(18, b"l", LIST), key(0, b"n", b"\xc0\x11"))


def valkey_file(*parts: bytes, head: bytes = b"VALKEY080") -> bytes:
    data = head + b"\xfa" + string(b"valkey-ver") + string(b"9.1.2") + b"".join(parts) + b"\xff"
    return data + crc_of(data).to_bytes(8, "little")


def refusal(data: bytes) -> str:
    with pytest.raises(CorruptData) as caught:
        list(reader_of(data).items())
    return str(caught.value)


def test_strings_lists_and_streams_are_read() -> None:
    reader = reader_of(valkey_file(*PARTS), deep=True)
    assert [item.key for item in reader.items()] == [b"s", b"l", b"n"]
    assert (reader.version, reader.is_valkey, reader.vouched) == (80, True, True)
    assert reader.aux[b"valkey-ver"] == b"9.1.2"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"VALKEY081", "RDB version 81; of Valkey, version 80 can be read (at byte 6)"),
        (b"VALKEY011", "RDB version 11; of Valkey"),
        (b"VALKEY-80", "is not the header of an RDB file (at byte 0)"),
        (b"REDIS0080", "RDB version 80; versions 1 to 15 can be read (at byte 5)"),
    ],
)
def test_another_version_is_refused(head: bytes, said: str) -> None:
    assert said in refusal(valkey_file(*PARTS, head=head))


def test_what_penstock_cannot_hold_is_refused_by_name() -> None:
    text = refusal(valkey_file(key(22, b"h", HASH)))
    assert "the key b'h' in database 0: type 22 (a hash with expiring fields)" in text
    assert "a slot being imported (operation 243), which penstock cannot keep" in refusal(
        valkey_file(SLOT_IMPORT, *PARTS)
    )


def test_what_penstock_cannot_hold_is_skipped_where_only_streams_are_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(valkey_file(SLOT_IMPORT, key(22, b"h", HASH), *PARTS))
    assert [found.key for found in streams_in(str(path))] == [b"s"]
    assert kind_or_none(str(path)) is FileKind.RDB


def test_a_check_names_the_hash_and_a_copy_has_the_rest(tmp_path: Path) -> None:
    """The copy is a file of Redis 7.2, which Valkey reads too."""
    path = tmp_path / "dump.rdb"
    path.write_bytes(valkey_file(key(22, b"h", HASH), *PARTS))
    report = check_path(SystemDisk(), str(path), keep_data=True)
    (file,) = report.files
    assert (file.version, file.keys, file.verdict.value) == (80, 3, "damaged")
    assert (
        "the key b'h' in database 0, a hash with expiring fields" in report.parts[0].left_out[0].why
    )
    copy = write_copy(SystemDisk(), report, str(tmp_path / "out"))
    assert copy.check is not None
    assert copy.check.verdict.value == "sound"
    assert (tmp_path / "out").read_bytes().startswith(b"REDIS0011")


def test_a_base_of_valkey_is_read_with_the_commands_behind_it(tmp_path: Path) -> None:
    log = tmp_path / "appendonlydir"
    log.mkdir()
    (log / "appendonly.aof.2.base.rdb").write_bytes(valkey_file(*PARTS))
    command = [b"XADD", b"s", b"1700000000001-0", b"k", b"v"]
    (log / "appendonly.aof.2.incr.aof").write_bytes(encode([b"SELECT", b"0"]) + encode(command))
    (log / "appendonly.aof.manifest").write_text(
        "file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i\n"
    )
    (found,) = streams_in(str(tmp_path))
    assert found.stream.length == 2
    assert check_path(SystemDisk(), str(tmp_path)).verdict.value == "sound"


@pytest.mark.parametrize("level", list(compat.LEVELS))
def test_every_level_restores_a_payload_of_valkey(level: str) -> None:
    """It is logged in the form of the level: no Redis accepts Valkey's version."""
    bench = DumpBench(level)
    journal = Journal()
    bench.engine.context.effects = journal
    assert bench.run("RESTORE", "s", 0, sealed(b"\x15" + STREAM, 80)) == "OK"
    assert isinstance(bench.engine.context.keyspace.values[b"s"], Stream)
    logged = journal.take()
    assert bench.ask("DUMP s") in logged
    version = compat.LEVELS[level].rdb_version
    assert bench.ask("DUMP s")[-10:-8] == bytes([version, 0])


def test_other_payloads_above_the_level_are_refused() -> None:
    bench = DumpBench("7.2")
    wrong = Refusal("ERR DUMP payload version or checksum are wrong")
    for version in (12, 79, 81, 0x5000):
        assert bench.run("RESTORE", "s", 0, sealed(b"\x15" + STREAM, version)) == wrong
    damaged = sealed(b"\x15" + STREAM, 80)[:-1] + b"!"
    assert bench.run("RESTORE", "s", 0, damaged) == wrong
    assert bench.run("RESTORE", "h", 0, sealed(b"\x16" + HASH, 80)) == Refusal(
        "ERR Bad data format"
    )
