"""The keys of the last rows of silver, to find duplicates. It needs Arrow, no Spark.

A row is a duplicate if a row with the same key was kept, at most `within` before or after it. Rows are taken
in the order of their ids, so of several rows the first one is kept. A row that was dropped does not count:
after `within` the next row with the key is kept, however many duplicates there were.

A key is 128 bits of hash. Kept keys are in Arrow tables, 24 bytes each, one table per batch. To find the keys
of a batch, each table is scanned once against the set of the batch's hashes. When there are TABLES_MAX
tables, they are merged, and keys that are too old are removed.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

KEYS = pa.schema([("first", pa.int64()), ("second", pa.int64()), ("ms", pa.int64())])
TABLES_MAX = 64


class RecentKeys:
    """The kept keys with their times."""

    def __init__(self, within_ms: int) -> None:
        self._within_ms = within_ms
        self._oldest_ms = 0
        self._tables: list[pa.Table] = []

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables)

    def forget_before(self, oldest_ms: int) -> None:
        """Forget keys that are older."""
        self._oldest_ms = oldest_ms
        self._tables = [one for one in self._tables if pc.max(one["ms"]).as_py() >= oldest_ms]
        if len(self._tables) > TABLES_MAX:
            merged = pa.concat_tables(self._tables)
            self._tables = [merged.filter(pc.field("ms") >= oldest_ms).combine_chunks()]

    def add(self, keys: pa.Table) -> None:
        """Add keys that were kept."""
        if keys.num_rows:
            self._tables.append(keys.select(KEYS.names).cast(KEYS).combine_chunks())

    def duplicates(self, rows: pa.Table) -> pa.Array:
        """The indices of the duplicates among rows of a batch. The other rows are added.

        The columns are those of KEYS, `seq` and `stream`, which order rows of the same time.
        """
        known = self._known(rows["first"])
        counts = pc.value_counts(rows["first"])
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        suspects = pa.concat_arrays([repeated, known["first"].combine_chunks()])
        found = sorted(self._found(rows, suspects, known))
        indices = pa.array(found, pa.int64())
        numbers = pa.array(range(rows.num_rows), pa.int64())
        self.add(rows.filter(pc.invert(pc.is_in(numbers, value_set=indices))))
        return indices

    def _known(self, hashes: pa.ChunkedArray) -> pa.Table:
        """The kept keys that may be those of a batch."""
        wanted = pc.unique(hashes)
        parts = [one.filter(pc.is_in(one["first"], value_set=wanted)) for one in self._tables]
        found = pa.concat_tables([KEYS.empty_table(), *parts])
        return found.filter(pc.field("ms") >= self._oldest_ms)

    def _found(self, rows: pa.Table, suspects: pa.Array, known: pa.Table) -> list[int]:
        times: dict[tuple[int, int], list[int]] = {}
        for one in known.to_pylist():
            times.setdefault((one["first"], one["second"]), []).append(one["ms"])
        at = pc.indices_nonzero(pc.is_in(rows["first"], value_set=suspects))
        picked: list[dict[str, Any]] = rows.take(at).to_pylist()
        ordered = sorted(
            zip(at.to_pylist(), picked, strict=True),
            key=lambda one: (one[1]["ms"], one[1]["seq"], one[1]["stream"]),
        )
        found = []
        for index, row in ordered:
            kept = times.setdefault((row["first"], row["second"]), [])
            if any(abs(row["ms"] - other) <= self._within_ms for other in kept):
                found.append(index)
            else:
                kept.append(row["ms"])
        return found
