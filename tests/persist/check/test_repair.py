"""Repaired copies hold everything readable and nothing else, and the original is unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.persist.aof.batch import encode_batch, whole_batches
from penstock.persist.check.files import check_path
from penstock.persist.check.repair import Copy, RepairRefused, write_copy
from penstock.persist.check.report import Report, Verdict
from penstock.persist.disk import File, SystemDisk
from tests.support.disk.data_files import (
    FIRST,
    SECOND,
    OurFiles,
    accepts,
    log_file,
    log_files,
    write_ours,
    write_redis,
)
from tests.support.engine.engine_state import engine_state
from tests.support.servers.raw_redis import encode
from tests.support.servers.redis_server import redis_program_or_none

needs_redis = pytest.mark.skipif(redis_program_or_none() is None, reason="no redis-server on PATH")


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def mend(path: Path, out: Path, past_damage: bool = False) -> tuple[Report, Copy]:
    """Repair, and check that the original is unchanged and the copy is valid."""
    original = contents(path) if path.is_dir() else path.read_bytes()
    report = check_path(SystemDisk(), str(path), past_damage=past_damage, keep_data=True)
    copy = write_copy(SystemDisk(), report, str(out))
    assert (contents(path) if path.is_dir() else path.read_bytes()) == original
    assert copy.check is not None
    assert (copy.check.verdict, copy.check.warnings) == (Verdict.SOUND, [])
    return report, copy


def state(directory: Path) -> Any:
    """The data of a server that starts on a directory."""
    files = OurFiles(directory)
    recovered = files.store.recovery(load_truncated=False)
    recovered.with_log()
    files.bench.engine.adopt(recovered.engine)
    found = files.bench.state(), files.bench.ask("LRANGE l 0 -1"), files.bench.ask("GET text")
    files.store.close()
    return found


def damage(path: Path, text: bytes) -> int:
    """Change a bit of a text in a file; return the offset of its batch, or of the text without batches."""
    data = bytearray(path.read_bytes())
    place = data.index(text)
    data[place] ^= 1
    path.write_bytes(data)
    batch = data.rfind(b"#PSCRC:", 0, place)
    return place if batch < 0 else batch


@pytest.mark.parametrize("preamble", [True, False])
def test_a_sound_directory_is_copied_whole(tmp_path: Path, preamble: bool) -> None:
    directory = write_ours(tmp_path / "data", preamble)
    report, copy = mend(directory, tmp_path / "out")
    assert [part.left_out for part in report.parts] == [[], []]
    assert sorted(contents(tmp_path / "out")) == [
        "appendonlydir/appendonly.aof.1.base.rdb",
        "appendonlydir/appendonly.aof.manifest",
        "dump.rdb",
    ]
    assert copy.skipped == []
    assert state(tmp_path / "out") == state(directory)


def test_a_base_that_claims_a_version_of_the_future_does_not_stop_a_repair(tmp_path: Path) -> None:
    directory = write_ours(tmp_path / "data")
    path = log_file(directory, "base")
    path.write_bytes(b"REDIS0512" + path.read_bytes()[9:])
    report, _ = mend(directory, tmp_path / "out")
    assert report.verdict is Verdict.DAMAGED


LATER = (
    "XADD t IDMP p a * k v",
    "XADD t IDMP p b * k v",
    "XGROUP CREATE t g 0",
    "XREADGROUP GROUP g ann STREAMS t >",
    "XNACK t g FAIL IDS 1 1700000000000-1",
)


def test_a_copy_keeps_names_of_producers_and_returned_entries(tmp_path: Path) -> None:
    """The version of its base is one that can hold them, also if no snapshot was read."""
    files = OurFiles(tmp_path / "data", level="8.8")
    files.do(*LATER)
    files.store.close()
    mend(tmp_path / "data", tmp_path / "out")
    base = log_file(tmp_path / "out", "base").read_bytes()
    assert base.startswith(b"REDIS0014")
    assert later_state(tmp_path / "out") == later_state(tmp_path / "data")


def test_a_log_that_is_written_as_commands_keeps_them_too(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data", level="8.8")
    files.do(*LATER)
    files.store.close()
    data = log_file(tmp_path / "data", "incr").read_bytes()
    path = tmp_path / "log"
    refused = encode([b"SADD", b"x", b"y"])
    path.write_bytes(data + encode_batch(refused, 0, len(data)) + refused)
    _, copy = mend(path, tmp_path / "out.aof")
    text = Path(copy.path).read_bytes()
    assert (text.count(b"XIDMPRECORD"), text.count(b"XNACK")) == (2, 1)


def later_state(directory: Path) -> list[str]:
    files = OurFiles(directory, level="8.8")
    found = engine_state(files.store.recovery(load_truncated=False).with_log().engine)
    files.store.close()
    return found


def test_a_torn_end_is_left_out(tmp_path: Path) -> None:
    directory = write_ours(tmp_path / "data")
    path = log_file(directory, "incr")
    data = path.read_bytes()
    whole = data.rindex(b"#PSCRC:", 0, data.rindex(b"#PSCRC:"))
    path.write_bytes(data[: whole + 40])
    report, _ = mend(directory / "appendonlydir", tmp_path / "out")
    (left_out,) = report.parts[0].left_out
    assert (left_out.path, left_out.offset, left_out.size) == (str(path), whole, 40)
    stream, elements, _ = state(tmp_path / "out")
    assert elements == [b"a", b"b", b"c", b"d"]
    assert b"4-1" not in repr(stream).encode()


def test_data_after_a_hole_is_left_out_without_past_damage(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data")
    files.do(*FIRST)
    files.new_increment()
    files.do(*SECOND)
    files.store.close()
    first, second = log_files(tmp_path / "data", "incr")
    hole = damage(first, b"hello")
    report, _ = mend(tmp_path / "data", tmp_path / "out")
    of_first, of_second = report.parts[0].left_out
    assert (of_first.offset, of_first.size) == (hole, len(first.read_bytes()) - hole)
    assert "valid batches after it: 1 " in of_first.why
    assert (of_second.path, of_second.size) == (str(second), len(second.read_bytes()))
    assert state(tmp_path / "out")[1:] == ([b"a", b"b", b"c"], None)

    report, _ = mend(tmp_path / "data", tmp_path / "past", past_damage=True)
    (of_first,) = report.parts[0].left_out
    after = next(whole_batches(first.read_bytes(), hole + 1))
    assert (of_first.offset, of_first.size) == (hole, after - hole)
    assert "database 0" in of_first.why
    assert state(tmp_path / "past")[1:] == ([b"a", b"b", b"c", b"d"], None)


def test_commands_that_no_longer_apply_are_listed_one_by_one(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data")
    files.do("XADD s 1-1 k v", "SET a 1", "XGROUP CREATE s g 0", "XGROUP SETID s g 1-1", "SET b 2")
    files.store.close()
    path = log_file(tmp_path / "data", "incr")
    damage(path, b"CREATE")
    report, _ = mend(tmp_path / "data", tmp_path / "out", past_damage=True)
    hole, refused = report.parts[0].left_out
    assert hole.size > 0
    assert refused.size == 0
    assert path.read_bytes()[refused.offset :].startswith(b"*5\r\n$6\r\nXGROUP")
    assert "NOGROUP" in refused.why
    assert report.parts[0].totals.strings == 2


def test_the_database_before_a_hole_is_the_one_behind_it(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data")
    files.bench.engine.context.keyspace = files.bench.engine.context.databases[3]
    files.do("SET a 1", "SET b 2", "SET c 3")
    files.store.close()
    damage(log_file(tmp_path / "data", "incr"), b"$1\r\nb")
    report, _ = mend(tmp_path / "data", tmp_path / "out", past_damage=True)
    assert "database 3" in report.parts[0].left_out[0].why
    engine = check_path(SystemDisk(), str(tmp_path / "out"), keep_data=True).parts[0].engine
    assert engine is not None
    assert dict(engine.context.databases[3].values.items()) == {b"a": b"1", b"c": b"3"}


def test_a_value_that_looks_like_a_batch_is_not_replayed(tmp_path: Path) -> None:
    """A client could plant commands in a value, to be found after damage."""
    planted = b"*1\r\n$8\r\nFLUSHALL\r\n"
    first = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
    last = b"*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\n3\r\n"
    path = tmp_path / "log"
    log, place = b"", 0
    for _ in range(2):  # the second time with its exact offset
        value = encode_batch(planted, 0, place) + planted
        command = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\n%s\r\n" % (len(value), value)
        log = b""
        for data in (first, command, last):
            log += encode_batch(data, 0, len(log)) + data
        place = log.index(value)
    path.write_bytes(log)
    damage(path, b"$1\r\nb")
    report, _ = mend(path, tmp_path / "out", past_damage=True)
    assert report.parts[0].totals.keys == 2


def test_a_log_without_its_base_is_read_only_with_past_damage(tmp_path: Path) -> None:
    directory = write_ours(tmp_path / "data")
    log_file(directory, "base").unlink()
    report, copy = mend(directory, tmp_path / "out")
    assert copy.skipped == ["log"]
    assert sorted(contents(tmp_path / "out")) == ["dump.rdb"]
    assert report.parts[0].left_out[0].why.startswith("it is listed")
    with pytest.raises(RepairRefused, match="nothing can be read"):
        mend(directory / "appendonlydir", tmp_path / "none")
    assert not (tmp_path / "none").exists()
    report, _ = mend(directory / "appendonlydir", tmp_path / "past", past_damage=True)
    assert report.parts[0].totals.entries == 2


def test_a_missing_increment_ends_what_can_be_read(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data")
    files.do(*FIRST)
    for line in SECOND:
        files.new_increment()
        files.do(line)
    files.store.close()
    log_files(tmp_path / "data", "incr")[2].unlink()
    report, _ = mend(tmp_path / "data", tmp_path / "out")
    assert [file.verdict.value for file in report.files] == [
        *("sound", "sound", "sound", "sound", "missing", "not read", "not read")
    ]
    assert report.parts[0].totals.entries == 3


def test_the_keys_before_the_damage_of_a_snapshot_are_kept(tmp_path: Path) -> None:
    path = write_ours(tmp_path / "data") / "dump.rdb"
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"text") + 2])
    report, _ = mend(path, tmp_path / "out")
    assert (report.files[0].keys, report.parts[0].totals.strings) == (2, 0)
    (left_out,) = report.parts[0].left_out
    assert left_out.offset + left_out.size == path.stat().st_size
    assert (tmp_path / "out").read_bytes().startswith(b"REDIS00")


def test_a_single_log_is_cut_where_its_damage_begins(tmp_path: Path) -> None:
    path = log_file(write_ours(tmp_path / "data"), "incr")
    # It is checked alone, without the base that its commands need.
    path = path.rename(tmp_path / "log")
    data = path.read_bytes()
    hole = damage(path, b"$1\r\nd")
    _, _ = mend(path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data[:hole]


def test_a_refused_command_inside_of_a_batch_leaves_no_half_of_it(tmp_path: Path) -> None:
    words = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$4\r\nSADD\r\n$1\r\nx\r\n$1\r\ny\r\n"
    path = tmp_path / "log"
    path.write_bytes(encode_batch(words, 0, 0) + words)
    report, _ = mend(path, tmp_path / "out")
    assert report.parts[0].totals.keys == 1
    assert (tmp_path / "out").read_bytes().endswith(words[: words.index(b"*3\r\n$4")])


@needs_redis
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_repaired_files_of_redis_can_be_read_by_redis(tmp_path: Path, preamble: str) -> None:
    directory = write_redis(tmp_path / "data", "--aof-use-rdb-preamble", preamble)
    path = log_file(directory, "incr")
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    mend(directory, tmp_path / "out")
    assert accepts("redis-check-aof", tmp_path / "out/appendonlydir/appendonly.aof.manifest")
    assert accepts("redis-check-rdb", tmp_path / "out/dump.rdb")
    mend(path, tmp_path / "one")
    assert accepts("redis-check-aof", tmp_path / "one")
    mend(log_file(directory, "base"), tmp_path / "base")
    assert (tmp_path / "base").read_bytes() == log_file(directory, "base").read_bytes()


@needs_redis
def test_a_log_whose_head_is_damaged_keeps_the_keys_before_that(tmp_path: Path) -> None:
    directory = write_redis(tmp_path / "data")
    head = log_file(directory, "base").read_bytes()
    path = tmp_path / "old.aof"
    path.write_bytes(head[:-20] + log_file(directory, "incr").read_bytes())
    report, _ = mend(path, tmp_path / "out")
    assert report.parts[0].totals.keys >= 1
    assert accepts("redis-check-aof", tmp_path / "out")


# --- Where a copy may go -------------------------------------------------------------------------------


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    directory = write_ours(tmp_path / "data")
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    for name in ("file", "nowhere", "empty"):
        with pytest.raises(RepairRefused, match="exists"):
            mend(directory, tmp_path / name)
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert not (tmp_path / "gone").exists()
    with pytest.raises(RepairRefused, match="inside"):
        mend(directory, directory / "out")
    with pytest.raises(RepairRefused, match="not a directory"):
        mend(directory, tmp_path / "no/such/out")


class FullDisk(SystemDisk):
    """A disk without space for appends."""

    def append_to(self, path: str) -> File:
        if path.endswith("dump.rdb"):
            raise OSError(28, "No space left on device", path)
        return super().append_to(path)


def test_a_copy_that_cannot_be_finished_is_removed(tmp_path: Path) -> None:
    directory = write_ours(tmp_path / "data")
    report = check_path(SystemDisk(), str(directory), keep_data=True)
    with pytest.raises(OSError, match="No space left"):
        write_copy(FullDisk(), report, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
