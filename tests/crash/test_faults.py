"""Disks that fail: nothing is acknowledged that is not on disk, and acknowledged data survives."""

from __future__ import annotations

import errno
import random
from contextlib import suppress

import pytest

from penstock.errors import CorruptData
from penstock.persist.aof.commit import Policy
from tests.support.campaign import cases
from tests.support.disk.durable_work import LAYOUT, OPTIONS, Work, log_of_two_increments
from tests.support.disk.fake_disk import FakeDisk, Fault
from tests.support.disk.power_cuts import WORST, PowerCuts
from tests.support.engine.engine_state import engine_state

REFUSED = "No space|Input/output|Read-only|Permission"
KINDS = ["write", "sync", "create", "rename", "sync_dir"]


def fail_somewhere(work: Work) -> None:
    """Work and rewrite until the disk fails. Raises: OSError."""
    for _ in range(3):
        for _ in range(3):
            work.do_unit()
        work.sync()
    rewrite = work.begin_rewrite()
    work.do_unit()
    work.sync()
    work.finish_rewrite(rewrite)
    for _ in range(20):
        work.do_unit()
        work.sync()


def begin_afresh(work: Work) -> None:
    """What an owner does when the disk may work again. Raises: OSError."""
    work.commit.give_up_unreleased()
    rewrite = work.store.begin_afresh(OPTIONS)
    at = work.commit.position
    unit = work.unit
    work.store.write_base(rewrite.temporary, OPTIONS)
    work.store.finish_rewrite(rewrite)
    work.note_handed(at, unit)
    work.note_promised()


@pytest.mark.parametrize("policy", [Policy.ALWAYS, Policy.EVERY_SECOND])
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_failure_nothing_is_promised(kind: str, policy: Policy) -> None:
    """At every operation: effects handed over after the failure are never released or synced."""
    for number in range(cases(250)):
        work = Work(FakeDisk(), random.Random(number), policy)
        work.start()
        code = errno.EIO if number % 2 else errno.ENOSPC
        work.disk.fail(Fault(kind, number // 2, code, part=(number % 3) / 2))
        with suppress(OSError):
            fail_somewhere(work)
        commit = work.commit
        if commit.failure is None:
            continue  # nothing failed, or only a new base: the log continues
        assert commit.failure.errno == code
        promised = work.note_promised()
        work.do("XADD s * never promised")
        work.do("SET k never-promised")
        assert not commit.hand_over()
        assert commit.released < commit.position
        with pytest.raises(OSError, match=REFUSED) as caught:
            commit.wait_synced(commit.position)
        assert caught.value.errno == code
        commit.sync()
        assert commit.synced < commit.position
        assert work.note_promised() == promised
        with pytest.raises(OSError, match=REFUSED):
            work.store.close()
        found = Work(work.disk.after_cut(WORST, work.dice), random.Random(1))
        found.start()
        assert found.states[1] in work.states[promised:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fresh_base_after_a_failure_has_everything(kind: str) -> None:
    """Fails, heals, fails again while the base is written, heals; power is cut at every step."""
    for number in range(cases(20)):
        dice = random.Random(number)
        work = Work(FakeDisk(), dice)
        work.start()
        work.disk.fail(Fault("write" if number % 2 else "sync", number % 12, part=0.5))
        with suppress(OSError):
            fail_somewhere(work)
        if work.commit.failure is None:
            continue
        cuts = PowerCuts(work, number)
        for _ in range(3):
            work.disk.heal()
            work.disk.fail(Fault(kind, dice.randint(0, 6), errno.EIO, part=0.5))
            try:
                begin_afresh(work)
            except OSError as error:
                work.commit.failure = work.commit.failure or error
        work.disk.heal()
        begin_afresh(work)
        assert work.promised == work.unit
        for _ in range(3):
            work.do_unit()
        work.sync()
        assert work.promised == work.unit
        cuts.check_all()
        names = work.disk.names(LAYOUT.log_dir)
        assert len(names) == 3, f"something was left behind: {names}"


@pytest.mark.parametrize("number", range(2, 5))
def test_a_base_is_kept_while_a_manifest_that_lists_it_may_return(number: int) -> None:
    """Two manifests were renamed into place without a sync, and the base of the first one was removed."""
    work = Work(FakeDisk(), random.Random(number))
    work.start()
    work.do("INCR n")
    work.disk.fail(Fault("sync", 0, errno.EIO))
    with suppress(OSError):
        work.sync()
    cuts = PowerCuts(work, number)
    for _ in range(2):
        work.disk.heal()
        work.disk.fail(Fault("sync_dir", number, errno.EIO))
        try:
            begin_afresh(work)
        except OSError as error:
            work.commit.fail(error)
    work.disk.heal()
    begin_afresh(work)
    cuts.check_all()


def test_effects_during_a_fresh_base_survive() -> None:
    """While a server's child writes the base, keys expire, and those effects are not refused."""
    work = Work(FakeDisk(), random.Random(0))
    work.start()
    work.do("SET k v PX 1")
    work.disk.fail(Fault("sync", 0, errno.EIO))
    with pytest.raises(OSError, match=REFUSED):
        work.sync()
    work.disk.heal()
    work.commit.give_up_unreleased()
    rewrite = work.store.begin_afresh(OPTIONS)
    work.store.write_base(rewrite.temporary, OPTIONS)
    work.clock.at_ms += 10
    work.expire()
    assert work.commit.hand_over(), "reads go on, for nothing was promised"
    work.commit.sync()
    assert work.commit.synced < work.commit.position
    with pytest.raises(OSError, match="base"):
        work.commit.wait_synced(work.commit.position)
    work.commit.do(lambda: work.store.finish_rewrite(rewrite))
    work.commit.sync()
    assert work.commit.synced == work.commit.position
    found = Work(work.disk.after_cut(WORST, work.dice), random.Random(1))
    found.start()
    assert found.states[1] == engine_state(work.engine) == []


def test_a_failure_with_an_empty_queue_releases_nothing_later() -> None:
    """The end of a rewrite failed with everything synced. Later effects are dropped and reported."""
    work = Work(FakeDisk(), random.Random(0))
    work.start()
    work.do("XADD s * k v")
    work.sync()
    rewrite = work.begin_rewrite()
    work.sync()
    work.finish_rewrite(rewrite)
    work.disk.fail(Fault("rename", 0, errno.EIO))
    with pytest.raises(OSError, match=REFUSED):
        work.sync()
    assert work.commit.synced == work.commit.position
    work.do("XADD s * k v")
    assert not work.commit.hand_over()
    with pytest.raises(OSError, match=REFUSED):
        work.commit.wait_synced(work.commit.position)


def test_a_rewrite_that_begins_before_the_last_one_has_ended_keeps_every_file_that_counts() -> None:
    work = Work(FakeDisk(), random.Random(0))
    cuts = PowerCuts(work, 0)
    work.start()
    for number in range(3):
        work.do(f"XADD s * n {number}")
        first = work.begin_rewrite()
        work.do("INCR n")
        work.finish_rewrite(first)  # queued: the thread that syncs has not run it yet
        second = work.begin_rewrite()
        work.do("INCR n")
        work.sync()
        work.finish_rewrite(second)
        work.do("INCR n")
        work.sync()
    cuts.check_all()


def test_a_rewrite_that_ends_after_a_failure_changes_nothing() -> None:
    """The rewriting thread of an embedded database was still at work when a fresh base began."""
    work = Work(FakeDisk(), random.Random(0))
    work.start()
    work.do("INCR n")
    work.sync()
    overtaken = work.begin_rewrite()
    work.do("INCR n")
    work.disk.fail(Fault("sync", 0, errno.EIO))
    with pytest.raises(OSError, match=REFUSED):
        work.sync()
    work.disk.heal()
    begin_afresh(work)
    work.do("INCR n")
    work.sync()
    work.finish_rewrite(overtaken)
    work.sync()
    found = Work(work.disk.after_cut(WORST, work.dice), random.Random(1))
    found.start()
    assert found.states[1] == ["0 'n'", "  string '3'"]


def test_a_log_without_a_base_does_not_count() -> None:
    """The first base failed. A later rewrite makes it a log; it is never appended to the old log."""
    work = Work(FakeDisk(), random.Random(0))
    cuts = PowerCuts(work, 0)
    work.start()
    work.do("INCR n")
    work.end_log()
    work.do("INCR n")
    work.store.abandon_rewrite(work.begin_new_log())
    work.do("INCR n")
    work.sync()
    assert work.promised == 2
    rewrite = work.begin_rewrite()
    work.do("INCR n")
    work.sync()
    assert work.promised == 2
    work.finish_rewrite(rewrite)
    work.sync()
    assert work.promised == work.unit
    cuts.check_all()


# --- Directories that are not as they should be ----------------------------------------------------


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("kind", ["create", "append_to"])
def test_a_directory_that_cannot_be_written_is_refused_and_unchanged(kind: str, code: int) -> None:
    work = Work(FakeDisk(), random.Random(0))
    work.start()
    work.do("XADD s * k v")
    work.sync()
    disk = work.disk.after_kill() if kind == "append_to" else FakeDisk()
    before = disk.contents()
    disk.fail(Fault(kind, 0, code))
    with pytest.raises(OSError, match=REFUSED) as caught:
        Work(disk, random.Random(0)).start()
    assert caught.value.errno == code
    assert caught.value.filename.startswith(LAYOUT.directory)
    assert disk.contents() == before


def refused(disk: FakeDisk) -> str:
    """The error of a refused start, which must not change any file."""
    before = disk.contents()
    with pytest.raises(CorruptData) as caught:
        Work(disk, random.Random(0)).start()
    assert disk.contents() == before
    assert "at byte" in str(caught.value)
    return str(caught.value)


def changed(disk: FakeDisk, path: str, data: bytes) -> FakeDisk:
    found = disk.after_kill()
    found.put(path, data)
    return found


MANIFEST = LAYOUT.manifest
REMEDY = "penstock check --repair"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_file_that_the_manifest_names_is_missing(number: int) -> None:
    disk = log_of_two_increments()
    path = [name for name in disk.contents() if name != MANIFEST][number]
    disk.remove(path)
    text = refused(disk)
    assert MANIFEST in text
    assert path.rpartition("/")[2] in text
    assert "missing" in text
    assert REMEDY in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", ["cut off or damaged", "at byte 0"]),
        (b"\n", ["does not name a file"]),
        (b"# nothing\n", ["names no files"]),
        (b"file a seq 1 type b\nfile c seq 2 type b\n", ["two bases", "a and c", "wrong one"]),
        (b"file a seq 1 type b\nfile a seq 2 type i\n", ["a twice"]),
        (b"file a seq 2 type i\nfile c seq 1 type i\n", ["c comes after a"]),
        (b"file ../a seq 1 type b\n", ["does not name a file of this directory"]),
        (b'file "a seq 1 type b\n', ["a quote is never closed"]),
        (b"file a seq 0 type b\n", ["seq above 0"]),
        (b"file a seq 1 type x\n", ["type b, i or h"]),
        (b"file a seq 1", ["cut off or damaged"]),
        (b"file a seq 1 type b\n#PSCRC:00000000\n", ["checksum"]),
        (b"file a seq 1 type b\n#PSCRC:0000\n", ["cut off or damaged"]),
        (b"#" * (2 << 20), ["larger than 1048576 bytes"]),
    ],
)
def test_a_damaged_manifest_is_refused_with_a_reason_and_a_remedy(
    text: bytes, words: list[str]
) -> None:
    said = refused(changed(log_of_two_increments(), MANIFEST, text))
    for word in [MANIFEST, *words]:
        assert word in said
    assert REMEDY in said or "remove the line" in said or "not a manifest" in said


def test_every_byte_of_the_manifest_counts() -> None:
    disk = log_of_two_increments()
    text = disk.contents()[MANIFEST]
    for place in range(len(text)):
        for mask in (1, 2, 32, 255):
            damaged = bytearray(text)
            damaged[place] ^= mask
            assert MANIFEST in refused(changed(disk, MANIFEST, bytes(damaged)))
        assert MANIFEST in refused(changed(disk, MANIFEST, text[:place]))


def test_the_files_of_a_log_without_their_manifest_are_not_ignored() -> None:
    disk = log_of_two_increments()
    disk.remove(MANIFEST)
    text = refused(disk)
    for word in (MANIFEST, "is missing", "base.rdb", "restore it", "move them away"):
        assert word in text
    work = Work(disk, random.Random(0))
    with pytest.raises(FileExistsError, match="move them away"):
        work.store.begin_new_log(Policy.ALWAYS, OPTIONS)


@pytest.mark.parametrize("size", [1, 2, 511, 512, 1024, 1025, 4096, 70_000])
def test_zeros_at_the_end_are_cut_off_and_reported(size: int) -> None:
    disk = log_of_two_increments(is_clean=False)
    last = sorted(name for name in disk.contents() if "incr" in name)[-1]
    data = disk.contents()[last]
    whole = Work(disk.after_kill(), random.Random(0))
    whole.start()
    work = Work(changed(disk, last, data + bytes(size)), random.Random(0))
    recovered = work.recover()
    assert work.states[1] == whole.states[1]
    assert recovered.cut is not None
    assert (recovered.cut.path, recovered.cut.offset, recovered.cut.lost_bytes) == (
        last,
        len(data),
        size,
    )
    assert "zeros" in recovered.cut.why
    assert work.disk.contents()[last] == data


@pytest.mark.parametrize("size", [1, 512])
def test_zeros_at_the_end_of_an_earlier_file_are_damage(size: int) -> None:
    disk = log_of_two_increments()
    first = sorted(name for name in disk.contents() if "incr" in name)[0]
    text = refused(changed(disk, first, disk.contents()[first] + bytes(size)))
    assert first in text
    assert REMEDY in text


def test_a_torn_tail_is_refused_without_aof_load_truncated() -> None:
    disk = log_of_two_increments(is_clean=False)
    last = sorted(name for name in disk.contents() if "incr" in name)[-1]
    disk.put(last, disk.contents()[last] + b"#PSC")
    before = disk.contents()
    work = Work(disk, random.Random(0))
    with pytest.raises(CorruptData, match="aof-load-truncated yes") as caught:
        work.store.recovery(load_truncated=False).with_log()
    assert last in str(caught.value)
    assert disk.contents() == before
