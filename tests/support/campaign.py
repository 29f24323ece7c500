"""The size of a campaign of random tests: all cases in `make soak`, a tenth of them in `make test`.

A test with one set of cases for each version of Redis takes its versions from `levels`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
SOAK = os.environ.get("PENSTOCK_SOAK") == "1"


def cases(full: int) -> int:
    """The number of cases for this run, given the full number; at least one."""
    return full if SOAK else max(1, full // 10)


def cases_per_level(full: int) -> int:
    """The number of cases for each of the `levels`. In `make test` there are two of them: half for each."""
    return full if SOAK else max(1, full // 20)


def levels(*newer: str) -> list[str]:
    """The versions to compare with: 7.0 and all newer ones; in `make test` 7.0 and one of them.

    The commit chooses that one.
    """
    return ["7.0", *cells(newer)]


def cells(all_cells: Sequence[T]) -> list[T]:
    """The cells of a matrix that this run tests: all of them; in `make test` one, which the commit chooses.

    All processes of a run must agree about it, so without PENSTOCK_SEED it is the first.
    """
    if SOAK:
        return list(all_cells)
    return [all_cells[int(os.environ.get("PENSTOCK_SEED", "0")) % len(all_cells)]]


def is_chosen(step: int, one_in: int = 4) -> bool:
    """Whether a crash test repeats what crashed at a step: in `make test` the commit chooses some steps."""
    return SOAK or step % one_in == int(os.environ.get("PENSTOCK_SEED", "0")) % one_in


def seed() -> int:
    """The seed of a random test: PENSTOCK_SEED, to repeat a failure, or a random number."""
    return int(os.environ.get("PENSTOCK_SEED", random.randrange(2**32)))
