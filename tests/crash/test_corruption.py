"""Changes every byte of a small log and truncates every file: refused, cut and reported, or unchanged."""

from __future__ import annotations

import random

import pytest

from penstock.errors import CorruptData
from penstock.persist.recovery import Recovered
from penstock.persist.snapshot import SnapshotOptions
from tests.support.campaign import SOAK
from tests.support.disk.durable_work import LAYOUT, Work, log_of_two_increments
from tests.support.disk.fake_disk import FakeDisk

MASKS = (1, 0xFF, *((2, 4, 8, 16, 32, 64, 128) if SOAK else ()))


def prefixes_of(disk: FakeDisk, last: str) -> list[list[str]]:
    """The states after each batch of the last file, from none to all."""
    data = disk.contents()[last]
    ends = [*[at for at in range(len(data)) if data[at:].startswith(b"#PSCRC")][1:], len(data)]
    states = []
    for end in ends:
        found = outcome_of(changed(disk, last, data[:end]))
        assert found is not None
        states.append(found[0])
    return states


def changed(disk: FakeDisk, path: str, data: bytes) -> FakeDisk:
    found = disk.after_kill()
    found.put(path, data)
    return found


def outcome_of(disk: FakeDisk) -> tuple[list[str], Recovered] | None:
    """The recovered state, or None for a clear refusal that changed no file."""
    before = disk.contents()
    work = Work(disk, random.Random(0))
    try:
        recovered = work.recover()
    except CorruptData as error:
        refusal = error
    else:
        return work.states[1], recovered
    assert str(refusal).startswith(LAYOUT.directory), refusal
    assert f"at byte {refusal.offset}" in str(refusal)
    assert disk.contents() == before
    return None


def mutations(data: bytes) -> list[bytes]:
    """Each byte under each mask, and each truncation."""
    found = [data[:size] for size in range(len(data))]
    for place in range(len(data)):
        for mask in MASKS:
            damaged = bytearray(data)
            damaged[place] ^= mask
            found.append(bytes(damaged))
    return found


@pytest.fixture(scope="module")
def disk() -> FakeDisk:
    """The disk after the process was killed."""
    return log_of_two_increments(is_clean=False)


def log_files(disk: FakeDisk) -> list[str]:
    return sorted(name for name in disk.contents() if "incr" in name)


def test_a_change_of_the_base_or_of_a_complete_increment_is_refused(disk: FakeDisk) -> None:
    base = next(name for name in disk.contents() if "base" in name)
    whole = outcome_of(disk.after_kill())
    assert whole is not None
    for path in (base, log_files(disk)[0]):
        for data in mutations(disk.contents()[path]):
            found = outcome_of(changed(disk, path, data))
            assert found is None, (path, data)


def test_a_change_of_the_last_increment_is_refused_or_cut_and_reported(disk: FakeDisk) -> None:
    last = log_files(disk)[-1]
    whole = disk.contents()[last]
    vouched = whole.rindex(b"#PSCRC")
    prefixes = prefixes_of(disk, last)
    for data in mutations(whole):
        left = changed(disk, last, data)
        found = outcome_of(left)
        if found is None:
            continue
        state, recovered = found
        assert state in prefixes, data
        if len(data) == len(whole) and data[vouched:] == whole[vouched:]:
            # The last line states how much was on disk before it: none of that is cut off.
            assert recovered.cut is None, data
            assert state == prefixes[-1], data
        if recovered.cut is None:
            # A file cut exactly at the end of a batch shows no sign of damage.
            assert whole.startswith(data) or state == prefixes[-1], data
        else:
            assert recovered.cut.path == last
            assert recovered.cut.lost_bytes == len(data) - recovered.cut.offset
            assert recovered.cut.why
            if recovered.cut.kept_in is not None:
                assert left.contents()[recovered.cut.kept_in] == data[recovered.cut.offset :]
            else:
                assert not data[recovered.cut.offset :].strip(b"\0")


def test_after_a_clean_stop_every_change_of_any_file_is_refused() -> None:
    """The manifest records the length and checksum of each file, including the last one."""
    clean = log_of_two_increments()
    assert outcome_of(clean.after_kill()) is not None
    for path in (path for path in clean.contents() if "temp-" not in path):
        for data in mutations(clean.contents()[path]):
            assert outcome_of(changed(clean, path, data)) is None, (path, data)


def test_after_a_clean_stop_an_older_version_of_a_file_is_refused() -> None:
    """A file restored from an old backup has only valid batches: 100 of 200 entries came back."""
    work = Work(FakeDisk(), random.Random(5))
    work.start()
    older: list[dict[str, bytes]] = []
    for number in range(4):
        work.do(f"XADD s * n {number}")
        work.sync()
        if number == 2:
            work.finish_rewrite(work.begin_rewrite())
            work.sync()
        work.restart()
        older.append(work.disk.contents())
    work.store.close()
    clean = work.disk.after_kill()
    now = clean.contents()
    tried = 0
    for files in older:
        for path, data in files.items():
            if path in now and data != now[path] and path != LAYOUT.manifest:
                assert outcome_of(changed(clean, path, data)) is None, path
                tried += 1
    assert tried


def test_redis_may_append_to_the_last_file_after_a_clean_stop() -> None:
    """Redis does not change our manifest, and appends plain commands to our batches."""
    clean = log_of_two_increments()
    before = outcome_of(clean.after_kill())
    assert before is not None
    last = log_files(clean)[-1]
    by_redis = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$5\r\nadded\r\n$1\r\n1\r\n"
    grown = clean.contents()[last] + by_redis
    found = outcome_of(changed(clean, last, grown))
    assert found is not None
    assert len(found[0]) > len(before[0])
    torn = outcome_of(changed(clean, last, grown[:-3]))
    assert torn is not None
    assert torn[1].cut is not None
    damaged = bytearray(grown[:-3])
    damaged[len(clean.contents()[last]) // 2] ^= 1
    assert outcome_of(changed(clean, last, bytes(damaged))) is None
    work = Work(changed(clean, last, grown), random.Random(5))
    work.start()
    work.restart()


def test_the_marks_of_a_clean_stop_are_removed_when_the_log_continues() -> None:
    """A process that continues the log and is killed leaves more bytes than the manifest recorded."""
    disk = log_of_two_increments()
    assert b"bytes" in disk.contents()[LAYOUT.manifest].splitlines()[-2]
    work = Work(disk, random.Random(5))
    work.start()
    assert b"bytes" not in disk.contents()[LAYOUT.manifest].splitlines()[-2]
    work.do("INCR n")
    work.sync()
    found = outcome_of(disk.after_kill())
    assert found is not None
    assert found[0] == work.states[-1]


def test_a_change_of_a_base_of_commands_is_refused() -> None:
    """With aof-use-rdb-preamble no, a base has no checksum of its own, so it is written in batches."""
    work = Work(FakeDisk(), random.Random(0), options=SnapshotOptions(preamble=False))
    work.start()
    for line in ("XADD s * temp 21", "XGROUP CREATE s g 0", "SET k v", "RPUSH l a b"):
        work.do(line)
    work.sync()
    rewrite = work.begin_rewrite()
    work.finish_rewrite(rewrite)
    work.do("INCR n")
    work.sync()
    whole = outcome_of(work.disk.after_kill())
    assert whole is not None
    assert whole[0] == work.states[-1]
    path = next(name for name in work.disk.contents() if "base.aof" in name)
    for data in mutations(work.disk.contents()[path]):
        assert outcome_of(changed(work.disk, path, data)) is None, data


@pytest.mark.parametrize("kind", ["appendonly.aof", "an increment"])
def test_a_plain_log_is_read_refused_or_cut_whatever_was_changed_in_it(kind: str) -> None:
    """Redis writes no checksums, so a change inside a value cannot be noticed."""
    words = [["SELECT", "0"], ["XADD", "s", "1-1", "k", "v"], ["XGROUP", "CREATE", "s", "g", "0"]]
    words += [["MULTI"], ["SET", "a", "1"], ["SELECT", "1"], ["SET", "b", "2"], ["EXEC"]]
    words += [["SELECT", "0"]]
    words += [
        ["XCLAIM", "s", "g", "c", "0", "1-1", "TIME", "5", "RETRYCOUNT", "1", "FORCE", "JUSTID"]
    ]
    words += [["RPUSH", "l", "a", "b"], ["PEXPIREAT", "l", "1800000000000"]]
    data = b"#TS:1700000000\r\n" + b"".join(
        b"*%d\r\n" % len(line) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in line)
        for line in words
    )
    disk = FakeDisk()
    path = LAYOUT.old_log
    if kind == "an increment":
        path = LAYOUT.log_file("appendonly.aof.1.incr.aof")
        disk.put(LAYOUT.manifest, b"file appendonly.aof.1.incr.aof seq 1 type i\n")
    disk.put(path, data)
    assert outcome_of(disk.after_kill()) is not None
    read = cut = refused = 0
    for changed_data in mutations(data):
        found = outcome_of(changed(disk, path, changed_data))
        if found is None:
            refused += 1
        elif found[1].cut is None:
            read += 1
        else:
            cut += 1
            assert found[1].cut.lost_bytes == len(changed_data) - found[1].cut.offset
    assert read
    assert cut
    assert refused
