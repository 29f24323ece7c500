"""Damages data files and opens them: python fuzz/files.py DIRECTORY... --cases 10000 --seed 7

Each case copies one of the data directories and damages a file of it, often with corrected checksums, so that
the damage gets past them. Then the copy must pass three tests:

  check     `penstock check` reports and does not raise.
  repair    either writes a copy that a check finds valid, or writes nothing and gives the reason.
  open      raises CorruptData with file and offset or an OSError, or loads data that passes core/check, can
            be read by commands, and is the same after a rewrite and a restart.

Anything else is a failure: another exception, a crash, more than --memory-mb, more than a minute for a case.
A case depends only on the seed and its number: --cases 1 --first NUMBER repeats it. The copy of a failed case
is kept. The tests run the same campaign (tests/persist/test_file_fuzz.py).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.core.check import check_list, check_stream
from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import CommandError, CorruptData
from penstock.persist.aof.batch import encode_batch, parse_batch_or_none
from penstock.persist.aof.commit import Policy
from penstock.persist.check.files import check_path
from penstock.persist.check.repair import RepairRefused, write_copy
from penstock.persist.check.report import Verdict
from penstock.persist.disk import SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rdb import crc64
from penstock.persist.rdb.dump import dump_value
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store

CASE_SECONDS_MAX = 60
START_MS = 1_700_000_000_000
LEVELS = ("7.0", "7.4", "8.6", "8.10")
RDB_MAGIC = (b"REDIS", b"VALKEY")
RDB_CHECKSUM_BYTES = 8
LENGTHS = (
    *(b"\x00", b"\x3f", b"\x40", b"\x7f\xff", b"\x80\xff\xff\xff\xff", b"\x80\x7f\xff\xff\xff"),
    *(b"\x81" + b"\xff" * 8, b"\x81\x7f" + b"\xff" * 7, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00"),
    *(
        b"\xc0\xff",
        b"\xc1\xff\xff",
        b"\xc2\xff\xff\xff\xff",
        b"\xc3\x40\x10\x80\x10\x00\x00\x00",
        b"\xff",
    ),
)
NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"9",
    b"512",
    b"999999",
    b"2147483648",
    b"9223372036854775807",
    b"9" * 20,
)
Mutation = Callable[[random.Random, bytes, bytes], bytes]


# --- The damage: each takes the bytes and, for splices, the bytes of another file of its kind -----


def flipped(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(made))
        made[at] = rng.choice((made[at] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 0xFF))
    return bytes(made)


def cut(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def removed(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + data[end:]


def doubled(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 3)) + data[end:]


def moved(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    start, end = _block(rng, data)
    rest = data[:start] + data[end:]
    at = rng.randint(0, len(rest))
    return rest[:at] + data[start:end] + rest[at:]


def zeroed(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + bytes(end - start) + data[end:]


def lengthened(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    """A length of a snapshot, or what could be one, says something else."""
    at = rng.randrange(len(data))
    return data[:at] + rng.choice(LENGTHS) + data[at + rng.choice((0, 1, 2, 5, 9)) :]


def renumbered(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    """Change a number in a log or a manifest."""
    digits = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        return flipped(rng, data, data)
    at = rng.choice(digits)
    end = at
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    return data[:at] + rng.choice(NUMBERS) + data[end:]


def spliced(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def implanted(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, end = _block(rng, other)
    at = rng.randrange(len(data))
    return data[:at] + other[start:end] + data[at + rng.choice((0, end - start)) :]


def _block(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data))
    return start, min(len(data), start + rng.choice((1, 2, 4, 8, 16, 64, 300, 2000)))


MUTATIONS: tuple[Mutation, ...] = (
    *(flipped, flipped, flipped, cut, removed, doubled, moved, zeroed),
    *(lengthened, lengthened, renumbered, renumbered, spliced, implanted),
)


# --- Checksums made right again -------------------------------------------------------------------


def damaged(rng: random.Random, data: bytes, other: bytes) -> tuple[str, bytes]:
    """Damage a file; return the name of the damage and the new bytes."""
    mutation = rng.choice(MUTATIONS)
    if not data or not other:
        return "nothing", data
    if rng.random() < 0.2:
        return f"{mutation.__name__}, unsealed", mutation(rng, data, other)
    if data.startswith(RDB_MAGIC):
        return mutation.__name__, _sealed_snapshot(rng, mutation, data, other)
    if data.startswith(b"file "):
        text = mutation(rng, data.rpartition(b"#PSCRC:")[0] or data, other)
        return mutation.__name__, text + b"#PSCRC:%08x\n" % zlib.crc32(text)
    batches = batches_of(data)
    if not batches:
        return mutation.__name__, mutation(rng, data, other)
    return mutation.__name__, _sealed_log(rng, mutation, batches, other)


def _sealed_snapshot(rng: random.Random, mutation: Mutation, data: bytes, other: bytes) -> bytes:
    """Give a snapshot a valid checksum, or 0 for none."""
    head, body = data[:9], data[9:-RDB_CHECKSUM_BYTES]
    if not body:
        return mutation(rng, data, other)
    made = bytearray(head + mutation(rng, body, other[9:-RDB_CHECKSUM_BYTES] or body))
    crc = crc64.update(0, made, 0, len(made)) if rng.random() < 0.5 else 0
    return bytes(made) + crc.to_bytes(RDB_CHECKSUM_BYTES, "little")


def batches_of(data: bytes) -> list[tuple[bytes, bool]]:
    """The commands of each batch of a log, and whether everything before it was on disk."""
    found: list[tuple[bytes, bool]] = []
    at = 0
    while at < len(data):
        batch = parse_batch_or_none(data[at : at + 80], at)
        if batch is None:
            return []
        start = at + batch.head_bytes
        found.append((data[start : start + batch.size], batch.synced > 0))
        at = start + batch.size
    return found


def _sealed_log(
    rng: random.Random, mutation: Mutation, batches: list[tuple[bytes, bool]], other: bytes
) -> bytes:
    """Rebuild the lines of the changed batch and of all later ones."""
    foreign = [commands for commands, _ in batches_of(other)]
    if rng.random() < 0.3:  # whole batches: removed, doubled, reordered, from another file
        at = rng.randrange(len(batches))
        batches[at : at + rng.choice((0, 1, 3))] = [
            (commands, True)
            for commands in rng.sample(foreign, min(len(foreign), rng.choice((0, 1, 4))))
        ]
    full = [at for at, (commands, _) in enumerate(batches) if commands]
    if full:
        at = rng.choice(full)
        donor = rng.choice([one for one in foreign if one] or [batches[at][0]])
        batches[at] = mutation(rng, batches[at][0], donor), batches[at][1]
    made = b""
    for commands, is_synced in batches:
        made += encode_batch(commands, len(made) if is_synced else 0, len(made)) + commands
    return made


# --- What must hold -------------------------------------------------------------------------------


def check_promises(place: Path, rng: random.Random) -> str:
    """Run all three tests on a directory; return "loaded" or "refused"."""
    check_and_repair(place, past_damage=rng.random() < 0.5)
    if rng.random() < 0.2:
        run_command_line(place, rng)
    level = rng.choice(LEVELS)
    files = DataFiles(place, level)
    try:
        if not files.open():
            return "refused"
        use(files.engine)  # forgets names of producers that have expired
        before = state_of(files.engine)
        use(files.engine)
        assert state_of(files.engine) == before, "reading has changed the data"
        files.rewrite()
    finally:
        files.close()
    again = DataFiles(place, level)
    try:
        assert again.open(), "what was rewritten is refused"
        assert state_of(again.engine) == before, "a rewrite has changed the data"
    finally:
        again.close()
    return "loaded"


def must(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def check_and_repair(place: Path, past_damage: bool) -> None:
    """Check and repair. Raises any error that they should not have."""
    report = check_path(SystemDisk(), str(place), past_damage=past_damage, keep_data=True)
    out = place.with_name("repaired")
    try:
        copy = write_copy(SystemDisk(), report, str(out))
        assert copy.check is not None
        assert copy.check.verdict is Verdict.SOUND, f"the repaired copy: {copy.check}"
    except RepairRefused as refusal:
        must(report.verdict is not Verdict.SOUND, f"sound, but no copy: {refusal}")
        assert not out.exists(), "a refused repair leaves something behind"
    finally:
        shutil.rmtree(out, ignore_errors=True)


def run_command_line(place: Path, rng: random.Random) -> None:
    """Run `penstock check` as a user does: it prints something and ends with one of its exit codes."""
    out = place.with_name("repaired")
    words = ["check", str(place), *rng.choice(([], ["--json"]))]
    words += rng.choice(([], ["--repair", str(out)], ["--repair", str(out), "--past-damage"]))
    try:
        result = CliRunner().invoke(app, words, catch_exceptions=False, prog_name="penstock")
        assert result.exit_code in (0, 1, 2), result.output
        assert result.output, "penstock check says nothing"
    finally:
        shutil.rmtree(out, ignore_errors=True)


class DataFiles:
    """A data directory opened as by an embedded database."""

    def __init__(self, place: Path, level: str = LEVELS[-1]) -> None:
        self.engine = Engine(ManualClock(START_MS), level)
        self._place = str(place)
        self._options = SnapshotOptions()
        self._store = Store(SystemDisk(), Layout(self._place), self.engine, DATA_ROWS)
        self._store.lock()

    def open(self) -> bool:
        """False if it is refused with a proper error."""
        try:
            recovery = self._store.recovery(load_truncated=True)
            recovered = recovery.with_log()
        except CorruptData as error:
            must(self._place in str(error) and error.offset >= 0, f"no file or offset: {error}")
            return False
        except OSError as error:
            must(bool(error.filename), f"no file: {error!r}")
            return False
        self.engine.adopt(recovery.engine)
        self._store.begin_log(recovered, Policy.NO, self._options)
        return True

    def rewrite(self) -> None:
        assert self._store.commit is not None
        rewrite = self._store.begin_rewrite(self._options)
        self._store.commit.sync()
        self._store.write_base(rewrite.temporary, self._options)
        self._store.finish_rewrite(rewrite)

    def close(self) -> None:
        self._store.close()


def state_of(engine: Engine) -> dict[tuple[int, bytes], tuple[int | None, bytes]]:
    """Every value as a DUMP payload of the level, with its expiry, after an integrity check."""
    found = {}
    version = engine.context.compat.rdb_version
    for keyspace in engine.context.databases:
        for key, value in keyspace.values.items():
            if isinstance(value, Stream):
                check_stream(value)
            elif isinstance(value, ListValue):
                check_list(value)
            else:
                assert isinstance(value, bytes)
            found[keyspace.index, key] = keyspace.expires.get(key), dump_value(value, version)
    return found


ROWS: dict[str, Command] = {row.name: row for row in DATA_ROWS}


def use(engine: Engine) -> None:
    """Read every value with the commands that touch most of it."""
    for keyspace in engine.context.databases:
        engine.context.keyspace = keyspace
        for key, value in list(keyspace.values.items()):
            if isinstance(value, Stream):
                ask(engine, b"XRANGE", key, b"-", b"+")
                ask(engine, b"XREVRANGE", key, b"+", b"-")
                ask(engine, b"XINFO STREAM", key, b"FULL", b"COUNT", b"0")
                ask(engine, b"XINFO GROUPS", key)
            elif isinstance(value, ListValue):
                ask(engine, b"LRANGE", key, b"0", b"-1")
            else:
                ask(engine, b"GET", key)
    engine.context.keyspace = engine.context.databases[0]


def ask(engine: Engine, name: bytes, *words: bytes) -> None:
    frame = Frame()
    for word in (*name.split(), *words):
        frame.add(word)
    with contextlib.suppress(CommandError):
        engine.execute(ROWS[name.decode()], frame)


# --- The campaign ---------------------------------------------------------------------------------


def run_campaign(
    sources: list[Path], cases: int, seed: int, first: int, work: Path
) -> Counter[str]:
    """Run `cases` cases; count the results. Raises on the first failure."""
    outcomes: Counter[str] = Counter()
    kinds = _files_by_kind(sources)
    for number in range(first, first + cases):
        rng = random.Random(f"{seed}/{number}")
        source = rng.choice(sources)
        place = work / "case"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        path = rng.choice(sorted(one for one in place.rglob("*") if one.is_file()))
        other = rng.choice(kinds[_kind(path)])
        what, data = damaged(rng, path.read_bytes(), other.read_bytes())
        path.write_bytes(data)
        note = f"seed {seed}, case {number}: {source.name}, {path.relative_to(place)}, {what}; kept in {work}"
        (work / "now").write_text(note)
        signal.alarm(CASE_SECONDS_MAX)
        try:
            outcome = check_promises(place, rng)
        except Exception as error:
            shutil.rmtree(work / "damaged", ignore_errors=True)
            shutil.copytree(source, work / "damaged")
            (work / "damaged" / path.relative_to(place)).write_bytes(data)
            error.add_note(note)
            raise
        finally:
            signal.alarm(0)
        outcomes[outcome] += 1
        outcomes[f"{what} {outcome}"] += 1
    return outcomes


def _kind(path: Path) -> str:
    return (
        ".manifest" if path.suffix == ".manifest" else ".rdb" if path.suffix == ".rdb" else ".aof"
    )


def _files_by_kind(sources: list[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for source in sources:
        for path in sorted(one for one in source.rglob("*") if one.is_file()):
            found.setdefault(_kind(path), []).append(path)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Damage files of data, and open them.")
    parser.add_argument("sources", nargs="+", type=Path, help="data directories to copy and damage")
    parser.add_argument("--cases", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default 0)")
    parser.add_argument("--seed", type=int, help="what the cases are made from (default: random)")
    parser.add_argument(
        "--memory-mb", type=int, default=2048, help="address space (default 2048, 0: any)"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.memory_mb:
        resource.setrlimit(resource.RLIMIT_AS, (options.memory_mb << 20, options.memory_mb << 20))
    seed = random.randrange(2**32) if options.seed is None else options.seed
    work = Path(tempfile.mkdtemp(prefix="penstock-fuzz-"))
    outcomes = run_campaign(options.sources, options.cases, seed, options.first, work)
    shutil.rmtree(work)
    sys.stdout.write(f"seed {seed}\n")
    for what, count in sorted(outcomes.items()):
        sys.stdout.write(f"{count:10} {what}\n")


if __name__ == "__main__":
    main()
