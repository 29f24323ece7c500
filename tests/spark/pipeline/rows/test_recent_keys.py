"""Duplicates among random rows, compared with a simple model. Needs no Spark."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.pipeline.rows import recent_keys
from penstock.spark.pipeline.rows.recent_keys import RecentKeys
from tests.support.campaign import cases, seed

SCHEMA = pa.schema([*recent_keys.KEYS, ("seq", pa.decimal128(20)), ("stream", pa.string())])
WITHIN_MS = 50


def table(rows: list[tuple[int, int]]) -> pa.Table:
    """Rows of (key, ms). The second hash tells keys with the same first hash apart."""
    made = [
        {"first": key // 2, "second": key, "ms": ms, "seq": Decimal(at), "stream": "s"}
        for at, (key, ms) in enumerate(rows)
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def taken(keys: RecentKeys, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found = set(keys.duplicates(table(rows)).to_pylist())
    return [row for at, row in enumerate(rows) if at not in found]


def test_the_first_row_of_a_key_is_kept_until_the_time_is_over() -> None:
    keys = RecentKeys(WITHIN_MS)
    assert taken(keys, [(1, 100), (1, 100), (2, 100), (3, 101)]) == [(1, 100), (2, 100), (3, 101)]
    assert taken(keys, [(1, 140), (1, 150), (1, 151), (1, 170)]) == [(1, 151)]
    assert taken(keys, [(2, 151), (2, 201), (2, 202)]) == [(2, 151), (2, 202)]
    assert taken(keys, []) == []


def test_rows_are_taken_in_the_order_of_their_ids() -> None:
    keys = RecentKeys(WITHIN_MS)
    assert taken(keys, [(1, 140), (1, 100)]) == [(1, 100)]


@pytest.mark.parametrize("tables_max", [1, 64])
def test_old_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch, tables_max: int) -> None:
    monkeypatch.setattr(recent_keys, "TABLES_MAX", tables_max)
    keys = RecentKeys(WITHIN_MS)
    for ms in range(0, 1000, 10):
        keys.forget_before(ms - WITHIN_MS)
        taken(keys, [(ms, ms)])
    assert len(keys) <= (WITHIN_MS // 10 + 2) * (tables_max + 1)
    assert len(keys) >= WITHIN_MS // 10


def test_random_rows_agree_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    start = seed()
    for case in range(start, start + cases(200)):
        chance = random.Random(case)
        monkeypatch.setattr(recent_keys, "TABLES_MAX", chance.choice([1, 3, 64]))
        keys = RecentKeys(WITHIN_MS)
        kept: list[tuple[int, int]] = []
        now = 0
        for _ in range(chance.randrange(1, 12)):
            keys.forget_before(now - WITHIN_MS)
            batch = []
            for _ in range(chance.randrange(30)):
                now += chance.randrange(8)
                batch.append((chance.randrange(12), now))
            expected = _model(kept, batch)
            assert taken(keys, batch) == expected, f"seed {case}"
            kept += expected


def _model(kept: list[tuple[int, int]], batch: list[tuple[int, int]]) -> list[Any]:
    found: list[tuple[int, int]] = []
    for key, ms in batch:
        others = [at for other, at in (*kept, *found) if other == key]
        if not any(abs(ms - at) <= WITHIN_MS for at in others):
            found.append((key, ms))
    return found
