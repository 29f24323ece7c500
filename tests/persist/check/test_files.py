"""What a check reports about intact and damaged files of penstock and of Redis."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from penstock.errors import CorruptData
from penstock.persist.aof.batch import encode_batch
from penstock.persist.check.files import check_path
from penstock.persist.check.report import Report, Totals, Verdict
from penstock.persist.disk import Source, SystemDisk
from tests.support.campaign import SOAK
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
from tests.support.rdb.whole_files import key, rdb_file, string
from tests.support.servers.redis_server import redis_program_or_none

ALL = Totals(
    databases=1, keys=3, streams=1, lists=1, strings=1, entries=4, groups=1, consumers=1, expiring=1
)
needs_redis = pytest.mark.skipif(redis_program_or_none() is None, reason="no redis-server on PATH")


def check(path: Path, past_damage: bool = False) -> Report:
    return check_path(SystemDisk(), str(path), past_damage=past_damage)


def verdicts(report: Report) -> list[tuple[str, str]]:
    return [(file.role, file.verdict.value) for file in report.files]


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    return write_ours(tmp_path / "data")


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    return write_ours(tmp_path / "data", is_clean=False)


def test_after_a_clean_stop_an_older_increment_is_damage(ours: Path) -> None:
    """Each of its batches is valid."""
    path = log_file(ours, "incr")
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"#PSCRC:", 0, data.rindex(b"#PSCRC:"))])
    file = check(ours).files[2]
    assert file.verdict is Verdict.DAMAGED
    assert f"{len(data)} were written" in file.what


# --- Sound files ---------------------------------------------------------------------------------------


def test_a_data_directory_of_ours_is_sound_and_counted(ours: Path) -> None:
    report = check(ours)
    assert (report.kind, report.verdict) == ("data directory", Verdict.SOUND)
    assert verdicts(report) == [
        ("manifest", "sound"),
        ("base", "sound"),
        ("increment", "sound"),
        ("snapshot", "sound"),
    ]
    assert [part.totals for part in report.parts] == [ALL, ALL]
    assert [file.kind for file in report.files] == ["manifest", "RDB", "AOF", "RDB"]
    assert report.files[2].commands == len(SECOND)
    assert (
        report.files[2].batches == len(SECOND) + 2
    )  # it begins with an empty one, and ends with one
    assert report.warnings == []


@pytest.mark.parametrize("inner", ["appendonlydir", "appendonlydir/appendonly.aof.manifest"])
def test_a_log_is_found_by_its_directory_or_its_manifest(ours: Path, inner: str) -> None:
    report = check(ours / inner)
    assert report.verdict is Verdict.SOUND
    assert [part.totals for part in report.parts] == [ALL]


def test_a_file_is_what_it_contains_whatever_it_is_called(ours: Path) -> None:
    (ours / "dump.rdb").rename(ours / "notes.txt")
    (file,) = check(ours / "notes.txt").files
    assert (file.kind, file.verdict, file.keys) == ("RDB", Verdict.SOUND, 3)
    manifest = ours / "appendonlydir/appendonly.aof.manifest"
    manifest.rename(manifest.with_name("x"))
    assert check(manifest.with_name("x")).kind == "manifest"


@needs_redis
@pytest.mark.parametrize("rewrite", [True, False])
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_directory_of_redis_is_sound(tmp_path: Path, preamble: str, rewrite: bool) -> None:
    settings = ("--aof-use-rdb-preamble", preamble, "--aof-timestamp-enabled", "yes")
    directory = write_redis(tmp_path / "data", *settings, rewrite=rewrite)
    report = check(directory)
    assert (report.verdict, report.warnings) == (Verdict.SOUND, [])
    assert [part.totals for part in report.parts] == [ALL, ALL]
    assert report.files[1].kind == ("RDB" if preamble == "yes" else "AOF")


@needs_redis
def test_a_log_with_a_snapshot_at_its_head_is_sound(tmp_path: Path) -> None:
    directory = write_redis(tmp_path / "data")
    old = tmp_path / "old.aof"
    old.write_bytes(
        log_file(directory, "base").read_bytes() + log_file(directory, "incr").read_bytes()
    )
    report = check(old)
    (file,) = report.files
    assert (file.kind, file.version, file.verdict) == ("RDB+AOF", 10, Verdict.SOUND)
    assert report.parts[0].totals == ALL
    assert accepts("redis-check-aof", old)


def test_a_snapshot_without_a_checksum_is_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(rdb_file(key(0, b"k", string(b"v")), checksum=False))
    report = check(path)
    assert report.verdict is Verdict.SOUND
    assert any("no checksum" in warning for warning in report.warnings)


def test_a_manifest_that_lost_its_checksum_is_damaged(ours: Path) -> None:
    manifest = ours / "appendonlydir/appendonly.aof.manifest"
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join(line for line in lines if not line.startswith(b"#")))
    report = check(ours)
    assert report.verdict is Verdict.DAMAGED
    assert "cut off" in report.files[0].what


def test_a_complete_file_that_is_cut_off_between_two_batches_is_damaged(tmp_path: Path) -> None:
    """The file itself does not show that there was more."""
    files = OurFiles(tmp_path / "data")
    files.do("XADD s 1-1 temp 21", "SET k v")
    files.new_increment()
    files.do("SET k w")
    files.store.close()
    path = log_file(tmp_path / "data", "1.incr")
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"#PSCRC:")])
    report = check(tmp_path / "data")
    assert report.verdict is Verdict.DAMAGED
    assert any("were written" in file.what for file in report.files)


def test_databases_beyond_the_default_are_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"*2\r\n$6\r\nSELECT\r\n$2\r\n40\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
    report = check(path)
    assert report.verdict is Verdict.SOUND
    assert any("databases 41" in warning for warning in report.warnings)


def test_files_that_the_manifest_does_not_name_are_warned_about(ours: Path) -> None:
    (ours / "appendonlydir/appendonly.aof.9.incr.aof").write_bytes(b"")
    (ours / "appendonlydir/temp-rewrite").write_bytes(b"")
    warnings = check(ours).warnings
    assert any("9.incr.aof is not listed" in warning for warning in warnings)
    assert any("temp-rewrite is left over" in warning for warning in warnings)


def test_a_directory_in_use_is_checked_and_said_to_be_in_use(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data")
    files.do(*FIRST)
    for path in (tmp_path / "data", tmp_path / "data/appendonlydir"):
        report = check(path)
        assert report.verdict is Verdict.SOUND
        assert any("in use" in warning for warning in report.warnings)
    files.store.close()
    assert check(tmp_path / "data").warnings == []


# --- Damage --------------------------------------------------------------------------------------------


def test_a_torn_end_has_its_place_and_is_not_sound(killed: Path) -> None:
    path = log_file(killed, "incr")
    data = path.read_bytes()
    last = data.rindex(b"#PSCRC:")
    path.write_bytes(data[: last + 30])
    report = check(killed)
    file = report.files[2]
    assert (file.verdict, file.offset, file.size - file.offset) == (Verdict.TORN, last, 30)
    assert report.verdict is Verdict.TORN
    assert report.parts[0].totals.entries == 3


def test_an_end_of_zeros_is_torn(killed: Path) -> None:
    path = log_file(killed, "incr")
    data = path.read_bytes()
    path.write_bytes(data + bytes(500))
    file = check(killed).files[2]
    assert (file.verdict, file.offset) == (Verdict.TORN, len(data))
    assert "zeros" in file.what


def test_a_changed_bit_is_damage_and_what_follows_is_not_read(tmp_path: Path) -> None:
    files = OurFiles(tmp_path / "data")
    files.do(*FIRST)
    files.new_increment()
    files.do(*SECOND)
    files.store.close()
    first, second = log_files(tmp_path / "data", "incr")
    place = first.read_bytes().index(b"RPUSH")
    flip(first, place)
    report = check(tmp_path / "data")
    assert verdicts(report)[2:] == [("increment", "damaged"), ("increment", "not read")]
    damaged = report.files[2]
    assert damaged.offset == first.read_bytes().rindex(b"#PSCRC:", 0, place)
    assert damaged.what.startswith("a batch whose checksum is wrong, and ")
    assert damaged.what.endswith(" sound batches follow it")
    assert damaged.remedy
    assert second.name in report.files[3].path


def test_a_missing_file_is_named(ours: Path) -> None:
    log_file(ours, "base").unlink()
    report = check(ours / "appendonlydir")
    assert verdicts(report) == [
        ("manifest", "sound"),
        ("base", "missing"),
        ("increment", "not read"),
    ]


def test_a_last_increment_that_lost_all_its_bytes_is_damage(ours: Path) -> None:
    """Found by the random campaign: recovery refused it, but the check only warned."""
    log_file(ours, "incr").write_bytes(b"")
    report = check(ours / "appendonlydir")
    assert verdicts(report)[-1] == ("increment", "damaged")
    assert report.files[-1].what == "it is empty, but was not when it was listed"


def test_of_two_bases_the_newest_valid_one_is_used(ours: Path) -> None:
    directory = ours / "appendonlydir"
    base = log_file(ours, "base")
    newer = directory / "appendonly.aof.3.base.rdb"
    newer.write_bytes(base.read_bytes())
    lines = [
        f"file {base.name} seq 2 type b\n",
        f"file {newer.name} seq 3 type b\n",
        f"file {log_file(ours, 'incr').name} seq 2 type i\n",
    ]
    (directory / "appendonly.aof.manifest").write_text("".join(lines))
    report = check(directory)
    assert verdicts(report) == [
        ("manifest", "damaged"),
        ("base", "sound"),
        ("base", "not read"),
        ("increment", "sound"),
    ]
    assert report.files[1].path.endswith(newer.name)
    assert report.parts[0].totals == ALL
    flip(newer, 100)
    report = check(directory)
    assert [verdict for _, verdict in verdicts(report)] == ["damaged"] * 2 + ["sound"] * 2
    assert report.parts[0].totals == ALL
    flip(base, 100)
    report = check(directory)
    assert [verdict for _, verdict in verdicts(report)] == ["damaged"] * 3 + ["not read"]


def test_a_log_without_its_manifest_is_not_guessed_at(ours: Path) -> None:
    (ours / "appendonlydir/appendonly.aof.manifest").unlink()
    report = check(ours)
    assert verdicts(report) == [("manifest", "missing"), ("snapshot", "sound")]


def test_a_value_that_breaks_an_invariant_is_damage(tmp_path: Path) -> None:
    """A list's node whose header counts one element more than it has."""
    path = tmp_path / "x"
    node = b"\x0b\x00\x00\x00\x02\x00\x81a\x02\x00\xff"
    path.write_bytes(rdb_file(key(18, b"l", b"\x01\x02" + string(node))))
    (file,) = check(path).files
    assert file.verdict is Verdict.DAMAGED


def test_no_changed_byte_of_our_log_changes_the_data_unseen(tmp_path: Path) -> None:
    """If the line of a batch becomes an annotation, its commands are not covered by a checksum."""
    files = OurFiles(tmp_path / "data")
    files.do("XADD s 1-1 temp 21", "SET k v")
    files.store.close()
    path = log_file(tmp_path / "data", "incr")
    sound = path.read_bytes()
    for offset in range(len(sound)):
        flip(path, offset)
        (file,) = check(path).files
        assert file.verdict in (Verdict.DAMAGED, Verdict.TORN), offset
        path.write_bytes(sound)


def test_a_batch_that_promises_more_than_memory_is_cut_off_and_not_allocated(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x"
    first = encode_batch(b"", 0, 0)
    line = b"#PSCRC:1:900000000000000000:00000000:0:"
    own = zlib.crc32(b"%d:%s" % (len(first), line))
    path.write_bytes(first + line + b"%08x\r\n*1\r\n" % own)
    (file,) = check(path).files
    assert (file.verdict, file.offset) == (Verdict.TORN, len(first))


# --- Hostile places ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../dump.rdb", "/etc/passwd", "..", ".", "a/b", "a\0b", ""])
def test_a_manifest_cannot_name_a_file_outside_of_its_directory(ours: Path, name: str) -> None:
    manifest = ours / "appendonlydir/appendonly.aof.manifest"
    manifest.write_text(f'file "{name}" seq 1 type b\n')
    (file,) = check(manifest).files
    assert file.verdict is Verdict.DAMAGED
    assert "does not name a file of this directory" in file.what


@pytest.mark.parametrize("seq", ["0", "-1", "9" * 5000, "\u0663", "x"])
def test_a_manifest_with_an_invalid_number_is_damaged(ours: Path, seq: str) -> None:
    manifest = ours / "appendonlydir/appendonly.aof.manifest"
    manifest.write_text(f"file a seq {seq} type b\n")
    assert check(manifest).verdict is Verdict.DAMAGED


def test_a_name_that_is_too_long_for_the_system_cannot_be_read(ours: Path) -> None:
    manifest = ours / "appendonlydir/appendonly.aof.manifest"
    manifest.write_text(f"file {'x' * 5000} seq 1 type b\n")
    assert verdicts(check(manifest)) == [("manifest", "sound"), ("base", "unreadable")]
    with pytest.raises(OSError, match="too long"):
        check(ours / ("x" * 5000))


def test_a_directory_or_a_pipe_in_the_place_of_a_file_is_refused(ours: Path) -> None:
    increment, base = log_file(ours, "incr"), log_file(ours, "base")
    increment.unlink()
    increment.mkdir()
    base.unlink()
    os.mkfifo(base)
    os.mkfifo(ours / "pipe")
    report = check(ours / "appendonlydir")
    assert verdicts(report)[1:] == [("base", "unreadable"), ("increment", "not read")]
    assert report.files[1].what == "Not a regular file"
    for path in (ours / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="Not a regular file"):
            check(path)


def test_links_are_followed_and_those_that_lead_nowhere_are_missing(ours: Path) -> None:
    base = log_file(ours, "base")
    moved = base.rename(ours / "elsewhere")
    base.symlink_to(moved)
    assert check(ours / "appendonlydir").verdict is Verdict.SOUND
    moved.unlink()
    assert check(ours / "appendonlydir").files[1].verdict is Verdict.MISSING
    base.unlink()
    base.symlink_to(base)
    assert check(ours / "appendonlydir").files[1].verdict is Verdict.UNREADABLE


class ForbiddenDisk(SystemDisk):
    """A disk that refuses to read increments."""

    def read(self, path: str, offset: int = 0) -> Source:
        if ".incr." in path:
            raise PermissionError(13, "Permission denied", path)
        return super().read(path, offset)


def test_a_file_that_may_not_be_read_is_unreadable(ours: Path) -> None:
    report = check_path(ForbiddenDisk(), str(ours))
    assert (report.verdict, report.files[2].what) == (Verdict.UNREADABLE, "Permission denied")


@pytest.mark.parametrize(
    "data",
    [
        b"*", b"\xff", b"hello", b"REDIS", b"REDI", b"REDIS0010", b"REDIS9999", bytes(range(256)),
        b"*2147483647\r\n", b"*1\r\n$536870912\r\nx", b"*1\r\n$99999999999999999999\r\n", b"*-1\r\n",
        b"REDIS0010\x00\x81" + b"\x7f" * 8, b"REDIS0010\x00\x01k\xc3\x81" + b"\x7f" * 16,
        b"#TS:1", b"#" * 5000, b"#PSCRC:1:", b"*1\r\n$4\r\nEXEC\r\n", b"*1\r\n$5\r\nMULTI\r\n",
        b"*1\r\n$8\r\nFLUSHDBX\r\n", b"*2\r\n$6\r\nSELECT\r\n$9\r\n999999999\r\n",
        b"*3\r\n$4\r\nSADD\r\n$1\r\na\r\n$1\r\nb\r\n", b"\0" * 10,
    ],
)  # fmt: skip
def test_garbage_is_never_sound_and_never_a_crash(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    report = check(path)
    assert report.verdict in (Verdict.DAMAGED, Verdict.TORN)
    assert 0 <= report.files[0].offset <= len(data)


def test_an_empty_file_is_a_valid_log_but_not_a_valid_snapshot(tmp_path: Path) -> None:
    log, snapshot = tmp_path / "x.aof", tmp_path / "x.rdb"
    log.write_bytes(b"")
    snapshot.write_bytes(b"")
    report = check(log)
    assert (report.verdict, len(report.warnings)) == (Verdict.SOUND, 1)
    assert check(snapshot).verdict is Verdict.DAMAGED


def test_a_directory_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check(tmp_path)


def truncations(data: bytes) -> list[int]:
    """All sizes in a soak; otherwise those at the ends of lines and some between."""
    ends = {place for place in range(len(data) + 1) if data[place - 1 : place] in (b"", b"\n")}
    return sorted(ends | set(range(0, len(data) + 1, 1 if SOAK else 11)))


# --- Redis's own checkers ------------------------------------------------------------------------------


@needs_redis
def test_redis_check_aof_agrees_about_every_truncation_of_its_log(tmp_path: Path) -> None:
    directory = write_redis(tmp_path / "data", "--aof-timestamp-enabled", "yes", rewrite=False)
    sound = log_file(directory, "incr").read_bytes()
    path = tmp_path / "cut.aof"
    for size in truncations(sound):
        path.write_bytes(sound[:size])
        is_sound = check(path).verdict is Verdict.SOUND
        if sound[:size].rpartition(b"\n")[2].startswith(b"#"):
            # Redis accepts an annotation without a line end, and would append to the same line.
            assert not is_sound
        else:
            assert is_sound == accepts("redis-check-aof", path), size


@needs_redis
def test_redis_check_rdb_agrees_about_every_truncation_of_its_snapshot(tmp_path: Path) -> None:
    sound = (write_redis(tmp_path / "data", rewrite=False) / "dump.rdb").read_bytes()
    path = tmp_path / "cut.rdb"
    for size in truncations(sound):
        path.write_bytes(sound[:size])
        assert (check(path).verdict is Verdict.SOUND) == accepts("redis-check-rdb", path), size


# --- What the check has shown to be wrong in recovery -----------------------------------------------------


@pytest.mark.parametrize("data", [b"", bytes(300)])
def test_recovery_refuses_a_snapshot_of_nothing_or_zeros(tmp_path: Path, data: bytes) -> None:
    """Read as a log they would be empty or torn, and the server would start without data."""
    (tmp_path / "dump.rdb").write_bytes(data)
    with pytest.raises(CorruptData, match="should be a snapshot"):
        OurFiles(tmp_path)
    assert (tmp_path / "dump.rdb").read_bytes() == data
