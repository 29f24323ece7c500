"""Removing many keys of a rax at once."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.rax.cutting import cut_below, take_values
from penstock.core.rax.tree import Rax

KEYS = st.lists(st.binary(max_size=6) | st.text("ab", max_size=8).map(str.encode), max_size=60)


def made(keys: list[bytes], characters_max: int | None = None) -> Rax:
    rax = Rax() if characters_max is None else Rax(characters_max)
    for key in keys:
        rax.insert(key, b"value of " + key if len(key) % 3 else None)
    return rax


@given(KEYS, st.binary(max_size=6) | st.text("ab", max_size=8).map(str.encode))
def test_cut_below_removes_exactly_the_smaller_keys(keys: list[bytes], bound: bytes) -> None:
    rax = made(keys)
    values = cut_below(rax, bound)
    rax.check()
    gone = sorted({key for key in keys if key < bound})
    stays = sorted({key for key in keys if key >= bound})
    assert list(rax.pairs()) == [(k, b"value of " + k if len(k) % 3 else None) for k in stays]
    assert sorted(v for v in values if v is not None) == sorted(
        b"value of " + key for key in gone if len(key) % 3
    )


@given(KEYS, st.text("ab", max_size=8).map(str.encode), KEYS)
def test_a_cut_tree_is_the_tree_of_the_keys_left(
    keys: list[bytes], bound: bytes, later: list[bytes]
) -> None:
    rax = made(keys)
    cut_below(rax, bound)
    assert rax.draw() == made(sorted({key for key in keys if key >= bound})).draw()
    for key in later:
        rax.insert(key, None)
        rax.check()


@given(KEYS, st.text("ab", max_size=8).map(str.encode))
def test_chains_of_long_keys_are_cut_as_well(keys: list[bytes], bound: bytes) -> None:
    rax = made(keys, characters_max=2)
    cut_below(rax, bound)
    rax.check()
    assert [key for key, _ in rax.pairs()] == sorted({key for key in keys if key >= bound})


@pytest.mark.parametrize("left", [0, 1, 255, 256, 257, 4_000])
def test_ids_are_cut_at_any_place(left: int) -> None:
    keys = [struct.pack(">QQ", 1_700_000_000_000 + n // 3, n) for n in range(5_000)]
    rax = made(keys)
    bound = keys[-left] if left else b"\xff"
    assert len(cut_below(rax, bound)) >= 5_000 - left
    rax.check()
    assert [key for key, _ in rax.pairs()] == keys[5_000 - left :]


def test_an_iterator_goes_on_after_a_cut() -> None:
    rax = made([b"a", b"ab", b"b", b"c"])
    found = rax.iterator()
    found.seek("^")
    assert found.next()
    cut_below(rax, b"b")
    assert found.next()
    assert found.key == b"b"


def test_take_values_leaves_an_empty_tree() -> None:
    rax = made([b"ab", b"b", b"bcd"])
    assert sorted(v for v in take_values(rax) if v) == [b"value of ab", b"value of b"]
    rax.check()
    assert len(rax) == 0
    assert rax.insert(b"ab", 1)
    rax.check()
