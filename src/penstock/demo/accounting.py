"""Checks that each order is in the lake and in the streams exactly once.

Files are read with an ordinary Parquet reader, and streams with an ordinary client. The pipeline's own
numbers are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import redis

from penstock.demo.orders import Tally
from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class Names:
    """Streams, group and paths of the pipeline."""

    stream: str
    group: str
    rejects: str
    gold_stream: str
    lake: Path
    aggregate: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the accounts: a count, its expected value and the value found."""

    what: str
    expected: str
    found: str

    @property
    def holds(self) -> bool:
        """Whether the values are equal."""
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class Accounts:
    """All lines, and the revenue per minute for the chart."""

    lines: list[Line]
    revenue: list[tuple[datetime, float]]

    @property
    def hold(self) -> bool:
        """Whether the values of all lines are equal."""
        return all(line.holds for line in self.lines)


def settle(client: redis.Redis, names: Names, sent: Tally) -> Accounts:
    """Count everything. Raises: PenstockError if a table of the lake is missing."""
    bronze = _table(names.lake / "bronze", ["_id"])
    silver = _table(names.lake / "silver", ["_id", "qty", "price"])
    gold = _table(names.lake / "gold" / names.aggregate, ["window_start", "orders", "revenue"])
    rejected = client.xlen(names.rejects)
    cents = pc.sum(pc.multiply(silver["price"], silver["qty"].cast(pa.decimal128(10, 0)))).as_py()
    group = next(g for g in client.xinfo_groups(names.stream) if _text(g["name"]) == names.group)
    reasons = _reasons(client, names.rejects)
    lines = [
        Line("in the stream", _n(sent.orders), _n(client.xlen(names.stream))),
        Line("archived (bronze)", _n(sent.orders), _n(bronze.num_rows)),
        Line("distinct ids in the archive", _n(sent.orders), _n(_distinct(bronze))),
        Line("valid (silver)", _n(sent.orders - _sum(sent.rejected)), _n(_distinct(silver))),
        Line("rejected (dead-letter stream)", _n(_sum(sent.rejected)), _n(rejected)),
        *(
            Line(f"  reason {reason}", _n(count), _n(reasons.get(reason, 0)))
            for reason, count in sorted(sent.rejected.items())
        ),
        Line("valid + rejected", _n(sent.orders), _n(silver.num_rows + rejected)),
        Line("revenue of valid orders", _money(sent.valid_cents), _money(int((cents or 0) * 100))),
        Line(
            "minutes (gold table = gold stream)",
            _n(gold.num_rows),
            _n(client.xlen(names.gold_stream)),
        ),
        Line("pending", _n(0), _n(int(group["pending"]))),
        Line("lag", _n(0), "unknown" if group["lag"] is None else _n(int(group["lag"]))),
    ]
    minutes = zip(gold["window_start"].to_pylist(), gold["revenue"].to_pylist(), strict=True)
    revenue = sorted((at, float(amount)) for at, amount in minutes)
    return Accounts(lines, revenue)


def _table(path: Path, columns: list[str]) -> ds.Table:
    try:
        return ds.dataset(path, format="parquet", partitioning="hive").to_table(columns=columns)
    except (OSError, ValueError) as error:
        raise PenstockError(f"the lake has no table {path.name}: {error}") from error


def _distinct(table: ds.Table) -> int:
    return int(pc.count_distinct(table["_id"]).as_py())


def _reasons(client: redis.Redis, stream: str) -> dict[str, int]:
    found: dict[str, int] = {}
    start = "-"
    while True:
        entries: Any = client.xrange(stream, start, "+", count=1000)
        if not entries:
            return found
        for _, fields in entries:
            # The first reason: a quantity that does not parse also fails qty_positive.
            reason = _text(fields[b"_reason"]).split(",")[0]
            found[reason] = found.get(reason, 0) + 1
        start = f"({_text(entries[-1][0])}"


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _n(number: int) -> str:
    return f"{number:,}"


def _money(cents: int) -> str:
    return f"{Decimal(cents) / 100:,}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
