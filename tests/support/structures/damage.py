"""Listpacks from hex, sound or broken, and the error of a check that finds damage."""

from __future__ import annotations

import re

import pytest

from penstock.core import listpack
from penstock.errors import InvariantBroken

HEADER = "0101 0001 0101 816b02 0001"  # live 1, deleted 0, one field: k
ENTRY = "0201 0001 0001 817602 0401"  # SAME, +0, +0, v
SECOND = "0201 0101 0001 817602 0401"  # the same a millisecond later


def packed(count: int, *parts: str) -> bytearray:
    """A listpack from the hex of its elements."""
    body = bytes.fromhex(" ".join(parts))
    return bytearray((len(body) + 7).to_bytes(4, "little") + count.to_bytes(2, "little")) + (
        body + b"\xff"
    )


def counted(*parts: str) -> bytearray:
    """A listpack from the hex of its elements, which are well-formed, with the right count."""
    lp = packed(0xFFFF, *parts)
    lp[4:6] = listpack.length(lp).to_bytes(2, "little")
    return lp


def broken(number: str, what: str) -> pytest.RaisesExc[InvariantBroken]:
    return pytest.raises(InvariantBroken, match=rf"^{number}\b.*{re.escape(what)}")
