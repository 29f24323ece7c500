"""Throws damaged bytes at the listpack validator: python fuzz/listpack.py --cases 1000000 --seed 7

For any bytes:

  deep      validate() raises CorruptData, or returns a listpack that can be walked both ways, every
            element readable and the same from either end.
  shallow   after a check of header and end only, a walk may raise CorruptData or IndexError,
            nothing else, and it terminates.

A case depends only on the seed and its number, so a failure names the case to repeat:
--cases 1 --first NUMBER. The tests run the same campaign (tests/core/listpack/test_fuzz.py).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable

from penstock.core import listpack
from penstock.errors import CorruptData

INTEGER_EDGES = [
    edge + step
    for bits in (7, 12, 15, 23, 31, 63)
    for edge in (2**bits, -(2**bits))
    for step in (-1, 0, 1)
    if -(2**63) <= edge + step < 2**63
]
STRING_SIZES = (0, 1, 2, 5, 20, 62, 63, 64, 65, 125, 126, 127, 300, 4095, 4096)
GIANT_LENGTHS = (
    b"\xf0\xff\xff\xff\xff",
    b"\xf0\xff\xff\xff\x7f",
    b"\xf0\x00\x00\x00\x80",
    b"\xef\xff",
    b"\xbf",
    b"\xf0\x00\x00",
)
GIANT_BACKLENS = (
    b"\x0f\xff\xff\xff\xff",
    b"\x08\x80\x80\x80\x80",
    b"\x7f\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x7f",
    b"\x00",
)


def run_campaign(cases: int, seed: int, first: int = 0) -> Counter[str]:
    """Run `cases` cases; count the results. Raises on the first failure."""
    outcomes: Counter[str] = Counter()
    for number in range(first, first + cases):
        rng = random.Random(f"{seed}/{number}")
        damage = rng.choice(DAMAGES)
        data = damage(rng)
        try:
            outcome = check_promises(data)
        except Exception as error:
            error.add_note(
                f"seed {seed}, case {number}, {damage.__name__}: {len(data)} bytes, {data[:400].hex()}"
            )
            raise
        outcomes[outcome] += 1
        outcomes[f"{damage.__name__} {outcome}"] += 1
    return outcomes


# --- What must hold ------------------------------------------------------------------------------


def check_promises(data: bytes) -> str:
    """Check both properties for some bytes; return whether deep validation "accepted" or "refused" them."""
    try:
        lp = listpack.validate(data, deep=False)
    except CorruptData:
        assert is_refused(data), "shallow validation refuses what deep validation takes"
        return "refused"
    walk_carelessly(lp)
    if is_refused(data):
        return "refused"
    forward = walk(lp)
    assert forward == walk_back(lp)[::-1], "the two directions find different elements"
    assert listpack.length(lp) == len(forward)
    for at in forward:
        text = listpack.get_bytes(lp, at)
        value = listpack.get(lp, at)
        assert text == (b"%d" % value if isinstance(value, int) else value)
    assert lp == data, "looking has changed the bytes"
    return "accepted"


def is_refused(data: bytes) -> bool:
    try:
        listpack.validate(data, deep=True)
    except CorruptData:
        return True
    return False


def walk(lp: bytearray) -> list[int]:
    """The positions of all elements, from the first on."""
    places = []
    at = listpack.first(lp)
    while at:
        places.append(at)
        assert len(places) <= len(lp), "a walk that does not end"
        at = listpack.next_at(lp, at)
    return places


def walk_back(lp: bytearray) -> list[int]:
    """The positions of all elements, from the last on."""
    places = []
    at = listpack.last(lp)
    while at:
        places.append(at)
        assert len(places) <= len(lp), "a walk that does not end"
        at = listpack.previous_at(lp, at)
    return places


def walk_carelessly(lp: bytearray) -> None:
    """Read unchecked elements in every possible way."""
    steps: list[tuple[Callable[[bytearray], int], Callable[[bytearray, int], int]]] = [
        (listpack.first, listpack.next_at),
        (listpack.last, listpack.previous_at),
    ]
    for start, step in steps:
        count = 0
        try:
            at = start(lp)
            while at:
                count += 1
                assert count <= len(lp), "a walk that does not end"
                look_at(lp, at)
                at = step(lp, at)
        except (CorruptData, IndexError):
            continue


def look_at(lp: bytearray, at: int) -> None:
    for look in LOOKS:
        try:
            look(lp, at)
        except (CorruptData, IndexError):
            continue


def _compare_with_itself(lp: bytearray, at: int) -> bool:
    return listpack.equals(lp, at, lp, at, listpack.encoded_size(lp, at))


LOOKS: tuple[Callable[[bytearray, int], object], ...] = (
    listpack.is_int,
    listpack.get,
    listpack.get_bytes,
    listpack.get_int,
    listpack.string_size,
    _compare_with_itself,
)


# --- The damage ----------------------------------------------------------------------------------


def nothing(rng: random.Random) -> bytes:
    """A valid listpack of up to a dozen elements."""
    lp = listpack.new()
    for _ in range(rng.randrange(12)):
        kind = rng.random()
        if kind < 0.4:
            listpack.append_int(lp, rng.choice(INTEGER_EDGES))
        elif kind < 0.9:
            listpack.append(lp, rng.randbytes(rng.randrange(12)))
        else:
            listpack.append(lp, rng.randbytes(rng.choice(STRING_SIZES)))
    return bytes(lp)


def flipped_bytes(rng: random.Random) -> bytes:
    data = bytearray(nothing(rng))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        data[at] = rng.choice((rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 0xFF, 0))
    return bytes(data)


def truncated(rng: random.Random) -> bytes:
    data = nothing(rng)
    return _with_header(rng, data[: rng.randrange(len(data))])


def extended(rng: random.Random) -> bytes:
    """Bytes after the end, or instead of it."""
    data = nothing(rng)
    return _with_header(
        rng, data[: len(data) - rng.randrange(2)] + rng.randbytes(rng.randint(1, 40))
    )


def spliced(rng: random.Random) -> bytes:
    """The start of one listpack and the end of another."""
    left, right = nothing(rng), nothing(rng)
    return _with_header(rng, left[: _some_place(rng, left)] + right[_some_place(rng, right) :])


def wrong_total(rng: random.Random) -> bytes:
    data = nothing(rng)
    total = rng.choice((0, 5, 6, len(data) - 1, len(data) + 1, 2**31, 2**32 - 1))
    return total.to_bytes(4, "little") + data[4:]


def wrong_count(rng: random.Random) -> bytes:
    data = nothing(rng)
    return data[:4] + rng.choice((0, 1, 2, 11, 65534, 65535)).to_bytes(2, "little") + data[6:]


def random_bytes(rng: random.Random) -> bytes:
    return _with_header(rng, rng.randbytes(rng.randrange(120)))


def all_ff(rng: random.Random) -> bytes:
    return _with_header(rng, b"\xff" * rng.randrange(60))


def giant_length(rng: random.Random) -> bytes:
    """An element whose lead byte claims more content than there is."""
    data = nothing(rng)
    at = _element_place(rng, data)
    return _with_header(rng, data[:at] + rng.choice(GIANT_LENGTHS) + data[at:])


def giant_backlen(rng: random.Random) -> bytes:
    """An element whose backward length leads out of the listpack."""
    data = nothing(rng)
    at = _element_place(rng, data)
    return _with_header(rng, data[:at] + rng.choice(GIANT_BACKLENS) + data[at:])


def _element_place(rng: random.Random, data: bytes) -> int:
    """The offset of an element or of the end of a valid listpack."""
    return rng.choice([*walk(bytearray(data)), len(data) - 1])


def _some_place(rng: random.Random, data: bytes) -> int:
    """Between two elements or in the middle of one."""
    return _element_place(rng, data) if rng.random() < 0.5 else rng.randrange(len(data))


def _with_header(rng: random.Random, data: bytes) -> bytes:
    """Mostly correct the total, the count and the end, so that the damage after them is reached."""
    if rng.random() < 0.2 or len(data) < 7:
        return data
    count = data[4:6] if rng.random() < 0.5 else b"\xff\xff"
    return len(data).to_bytes(4, "little") + count + data[6:-1] + b"\xff"


DAMAGES: tuple[Callable[[random.Random], bytes], ...] = (
    nothing,
    flipped_bytes,
    flipped_bytes,
    truncated,
    extended,
    spliced,
    wrong_total,
    wrong_count,
    random_bytes,
    all_ff,
    giant_length,
    giant_backlen,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Throw damaged bytes at the listpack validator.")
    parser.add_argument("--cases", type=int, default=100_000, help="how many (default 100000)")
    parser.add_argument("--seed", type=int, help="what the cases are made from (default: random)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}, {options.cases} cases, {listpack.__file__}\n")
    for outcome, count in sorted(run_campaign(options.cases, seed, options.first).items()):
        sys.stdout.write(f"{count:10} {outcome}\n")


if __name__ == "__main__":
    main()
