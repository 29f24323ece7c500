"""Damaged files and payloads cause a clear error or the same data, never a crash, a hang or half a value."""

from __future__ import annotations

import random

import pytest

from penstock.errors import CorruptData
from penstock.persist.rdb.dump import dump_value
from tests.support.campaign import cases
from tests.support.engine.engines import START_MS
from tests.support.rdb.dump_payloads import DumpBench, body_of, sealed
from tests.support.rdb.whole_files import check_value, looks, read_all, reader_of, write_all
from tests.support.servers.raw_redis import Refusal

PAYLOADS = 20_000  # in make soak
PAYLOADS_AT_ONCE = 100


def small_bench(compat_version: str = "8.10") -> DumpBench:
    """A little of everything that a file can hold."""
    bench = DumpBench(compat_version)
    bench.engine.context.keyspace.clear()
    for number in range(1, 8):
        bench.ask(f"XADD s {number}-{number % 3} temp {20 + number} humid {'x' * number}")
    bench.ask("XADD s 9-0 door open")
    bench.ask("XADD s 9-1 temp 1 humid 2")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask("XREADGROUP GROUP g alice COUNT 3 STREAMS s >")
    bench.clock.at_ms += 50
    bench.ask("XREADGROUP GROUP g bob COUNT 2 STREAMS s >")
    bench.ask("XGROUP CREATE s h 2-2 ENTRIESREAD 2")
    bench.ask("XDEL s 2-2 9-0")
    bench.ask("XNACK s g FAIL IDS 2 4-1 2-2 RETRYCOUNT 70 FORCE")
    for name in ("a", "17", "a"):
        bench.ask(f"XADD s IDMP p {name} * temp 3 humid 4")
    bench.ask("XADD s IDMPAUTO producer * temp 5 humid 6")
    bench.ask("XCFGSET s IDMP-DURATION 86400")
    bench.ask("XADD s IDMP p b * temp 3 humid 4")
    bench.ask("XADD s IDMPAUTO producer * temp 5 humid 6")
    bench.ask("RPUSH l a 7 -40000 12345678901 " + "y" * 70)
    bench.ask("SET k " + "abc" * 12)
    bench.ask(f"SET n 17 PXAT {START_MS + 10**6}")
    return bench


@pytest.fixture(scope="module")
def small_file() -> bytes:
    return write_all(small_bench().engine.context.databases, 15)


def read_or_refused(data: bytes, deep: bool) -> list[object] | None:
    """The data of a file; None if it is refused with an offset inside it."""
    try:
        items = list(reader_of(data, deep).items())
    except CorruptData as error:
        return None if _is_clear(error, len(data)) else [error]
    for item in items:
        check_value(item.value)
    return looks(items)


def _is_clear(error: CorruptData, size: int) -> bool:
    return 0 <= error.offset <= size and str(error).startswith("test.rdb: ")


@pytest.mark.parametrize("deep", [True, False])
def test_every_flip_of_a_byte_is_noticed_or_changes_nothing(small_file: bytes, deep: bool) -> None:
    good = looks(read_all(small_file))
    dice = random.Random(0)
    for place in range(len(small_file)):
        flips = {1 << dice.randrange(8), 0xFF, dice.randrange(1, 256)}
        for flip in flips:
            bad = bytearray(small_file)
            bad[place] ^= flip
            assert read_or_refused(bytes(bad), deep) in (None, good), f"byte {place} ^ {flip}"


def test_every_flip_of_a_file_without_a_checksum_is_refused_or_sound(small_file: bytes) -> None:
    dice = random.Random(1)
    bare = small_file[:-8] + bytes(8)
    accepted = 0
    for place in range(9, len(bare) - 9):
        for flip in (1 << dice.randrange(8), dice.randrange(1, 256)):
            bad = bytearray(bare)
            bad[place] ^= flip
            found = read_or_refused(bytes(bad), True)
            assert not found or not isinstance(found[0], CorruptData)
            accepted += found is not None
    assert accepted


def test_every_truncation_is_refused(small_file: bytes) -> None:
    for size in range(len(small_file)):
        for deep in (True, False):
            assert read_or_refused(small_file[:size], deep) is None, f"{size} bytes"


def test_zeros_at_the_end_are_refused(small_file: bytes) -> None:
    for size in range(9, len(small_file), 7):
        zeros = bytes(len(small_file) - size)
        assert read_or_refused(small_file[:size] + zeros, False) is None, f"{size} bytes"


# --- Payloads -------------------------------------------------------------------------------------

COMMANDS = (
    """
XLEN m|XRANGE m - +|XREVRANGE m + -|XRANGE m (3-0 8-0 COUNT 2|XINFO STREAM m FULL COUNT 0|XINFO GROUPS m
XINFO CONSUMERS m g|XPENDING m g|XPENDING m g - + 100|XPENDING m g IDLE 1 - + 10 alice
XREADGROUP GROUP g carol COUNT 2 STREAMS m >|XREADGROUP GROUP g alice STREAMS m 0|XACK m g 1-1 3-0 4-1
XCLAIM m g bob 0 1-1 2-2 3-0 4-1 5-2|XAUTOCLAIM m g dave 0 0 COUNT 3|XDEL m 3-0 4-1 1-1|XADD m * f v
XADD m MAXLEN ~ 3 * temp 1 humid 2|XTRIM m MAXLEN 2|XTRIM m MINID 5|XGROUP DELCONSUMER m g alice
XGROUP SETID m g 0|XGROUP DESTROY m g|XREAD COUNT 3 STREAMS m 0|XSETID m 99999-0|XADD m MINID 6 * a b
XNACK m g FAIL IDS 3 1-1 3-0 5-2|XNACK m g SILENT IDS 2 6-0 7-1 FORCE|XADD m IDMP p a * f v
XREADGROUP GROUP g carol CLAIM 0 STREAMS m >|XDELEX m DELREF IDS 2 3-0 4-1|XACKDEL m g ACKED IDS 1 1-1
XADD m IDMPAUTO producer * temp 5 humid 6|XCFGSET m IDMP-MAXSIZE 1|XTRIM m MAXLEN 3 ACKED
LLEN m|LRANGE m 0 -1|LINDEX m -1|LREM m 0 7|LPOP m|RPOP m 2|LPUSH m z|RPUSH m 7 z|LTRIM m 1 -2|LPOS m z
LPOS m z RANK -1 COUNT 0|LSET m 0 y|LSET m -1 7|LINSERT m BEFORE z y|LINSERT m AFTER 7 y|LMPOP 1 m LEFT
GET m|APPEND m x|STRLEN m|TYPE m|OBJECT ENCODING m|DUMP m|COPY m m2|RENAME m m3|RENAME m3 m
""".strip()
    .replace("\n", "|")
    .split("|")
)


def mutated(dice: random.Random, body: bytes) -> bytes:
    """A payload's body with some bytes changed, removed, doubled or swapped."""
    bad = bytearray(body)
    for _ in range(dice.choice([1, 1, 1, 2, 2, 4])):
        place = dice.randrange(len(bad))
        kind = dice.randrange(10)
        if kind < 4:
            bad[place] ^= 1 << dice.randrange(8)
        elif kind < 6:
            bad[place] = dice.choice(
                [0, 1, 2, 3, 0x7F, 0x80, 0x81, 0xC0, 0xC3, 0xFE, 0xFF, dice.randrange(256)]
            )
        elif kind == 6:
            del bad[place : place + dice.randint(1, 4)]
        elif kind == 7:
            bad[place:place] = bad[place : place + dice.randint(1, 20)]
        elif kind == 8:
            other = dice.randrange(len(bad))
            bad[place], bad[other] = bad[other], bad[place]
        else:
            bad[place : place + 8] = dice.randbytes(8)
        if not bad:
            bad = bytearray(b"\x00")
    return bytes(bad)


def bodies() -> list[bytes]:
    """Values in every written form, compressed and uncompressed."""
    found = []
    for version in ("7.0", "7.4", "8.6", "8.10", "8.10"):
        bench = small_bench(version)
        for key in ("s", "s", "s", "l", "k"):
            found.append(body_of(bench.ask(f"DUMP {key}")))
    keyspace = small_bench().engine.context.keyspace
    for rdb_version in (12, 13, 14):
        for name in (b"s", b"s", b"l"):
            found.append(body_of(dump_value(keyspace.values[name], rdb_version, False)))
    return found


def restore_and_use(bench: DumpBench, dice: random.Random, body: bytes) -> bool:
    """Restore a body; if it is accepted, use the value, and check it after every command."""
    reply = bench.run("RESTORE", "m", 0, sealed(body, 15), "REPLACE")
    if reply != "OK":
        assert reply == Refusal("ERR Bad data format")
        return False
    keyspace = bench.engine.context.keyspace
    check_value(keyspace.values[b"m"])
    payload = bench.ask("DUMP m")
    assert bench.run("RESTORE", "again", 0, payload, "REPLACE") == "OK"
    assert bench.ask("DUMP again") == payload
    for line in dice.sample(COMMANDS, 8):
        bench.clock.at_ms += 1
        bench.ask(line)
        for value in keyspace.values.values():
            check_value(value)
    return True


@pytest.mark.parametrize("seed", range(max(1, cases(PAYLOADS) // PAYLOADS_AT_ONCE)))
def test_a_mutated_payload_is_refused_or_can_be_used(seed: int) -> None:
    dice = random.Random(seed)
    originals = bodies()
    bench = DumpBench("8.10")
    bench.engine.context.keyspace.clear()
    accepted = 0
    for number in range(PAYLOADS_AT_ONCE):
        body = mutated(dice, dice.choice(originals))
        try:
            accepted += restore_and_use(bench, dice, body)
        except Exception as error:
            error.add_note(f"seed {seed}, payload {number}: {body.hex()}")
            raise
    assert accepted
