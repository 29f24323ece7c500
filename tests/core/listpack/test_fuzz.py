"""The listpack validator against bytes that are not listpacks."""

from __future__ import annotations

import random

from fuzz.listpack import DAMAGES, INTEGER_EDGES, check_promises, run_campaign
from penstock.core import listpack
from tests.support.campaign import SOAK, cases


def test_damaged_bytes_are_refused_or_walk_the_same_both_ways() -> None:
    seed = random.randrange(2**32) if SOAK else 20240607
    outcomes = run_campaign(cases(100_000), seed)
    assert outcomes["accepted"] + outcomes["refused"] == cases(100_000)
    for damage in DAMAGES:
        assert outcomes[f"{damage.__name__} accepted"] + outcomes[f"{damage.__name__} refused"]
    # A campaign in which nearly everything fails at the header would prove little.
    assert outcomes["accepted"] > cases(100_000) // 10
    assert outcomes["nothing refused"] == 0
    assert outcomes["wrong_total accepted"] == 0


def test_every_single_flipped_bit_of_every_encoding_is_refused_or_walks() -> None:
    lp = listpack.new()
    for value in INTEGER_EDGES[::3]:
        listpack.append_int(lp, value)
    for size in (0, 5, 64, 4096):
        listpack.append(lp, b"x" * size)
    looked_at = [at for at in range(len(lp)) if lp[at] != ord("x")]
    for at in looked_at:
        for bit in range(8):
            data = bytearray(lp)
            data[at] ^= 1 << bit
            check_promises(bytes(data))
