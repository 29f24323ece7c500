"""Silver as a stream: each row once between two offsets, also from files that a compaction has merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK

pytest.importorskip("pyspark", reason=NO_PYSPARK)

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.core.stream_id import StreamID
from penstock.spark.lake.manifest import ArchiveError, DataFile, Manifest
from penstock.spark.pipeline.rows.silver_stream import SilverReader
from penstock.spark.source.offsets import Offset, Position

SCHEMA = pa.schema(
    [
        ("_stream", pa.string()),
        ("_id", pa.string()),
        ("v", pa.int64()),
        ("sku", pa.string()),
        ("new", pa.string()),
    ]
)
ALL = ReadAllAvailable()


def write(
    lake: Path, numbers: range, batch: int, generation: int = 0, until: int | None = None
) -> None:
    """A batch with these values: ids 1-0, 2-0 ..., in one file. Its position is the last one, or `until`."""
    rows = [{"_stream": "s", "_id": f"{at}-0", "v": at} for at in numbers]
    path = f"sku=a%2Fb/{batch}-{generation}.parquet"
    (lake / path).parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, pa.schema([*list(SCHEMA)[:2], ("v", pa.int32())]))
    pq.write_table(table, lake / path)
    position = {"s": f"{numbers.stop - 1 if until is None else until}-0"}
    file = DataFile(path, len(rows), 1)
    made = Manifest("q", batch, ("sku",), {}, (file,), generation, position)
    (lake / "_manifest").mkdir(exist_ok=True)
    (lake / made.name).write_text(json.dumps(made.to_json()))


def read(reader: SilverReader, start: Any, end: Any) -> list[int]:
    found = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    rows = [row for batch in found for row in batch.to_pylist()]
    assert all(batch.schema == SCHEMA for batch in found)
    assert {(row["sku"], row["new"]) for row in rows} <= {("a/b", None)}
    return sorted(row["v"] for row in rows)


def test_batches_are_read_once_and_in_order(tmp_path: Path) -> None:
    reader = SilverReader(str(tmp_path), SCHEMA, None)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    write(tmp_path, range(1, 4), 0)
    first = reader.latestOffset(start, ALL)
    assert read(reader, start, first) == [1, 2, 3]
    write(tmp_path, range(4, 6), 1)
    write(tmp_path, range(6, 10), 2)
    last = reader.latestOffset(first, ALL)
    assert read(reader, first, last) == [4, 5, 6, 7, 8, 9]
    assert reader.latestOffset(last, ALL) == last
    assert read(SilverReader(str(tmp_path), SCHEMA, None), start, first) == [1, 2, 3]


def test_a_limit_takes_whole_batches_and_at_least_one(tmp_path: Path) -> None:
    for batch in range(3):
        write(tmp_path, range(batch * 3 + 1, batch * 3 + 4), batch)
    reader = SilverReader(str(tmp_path), SCHEMA, 5)
    at, found = reader.initialOffset(), []
    for _ in range(3):
        end = reader.latestOffset(at, ReadMaxRows(5))
        found.append(read(reader, at, end))
        at = end
    assert found == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_a_run_over_what_there_is_stops_there(tmp_path: Path) -> None:
    write(tmp_path, range(1, 4), 0)
    reader = SilverReader(str(tmp_path), SCHEMA, None)
    reader.prepareForTriggerAvailableNow()
    write(tmp_path, range(4, 6), 1)
    start = reader.initialOffset()
    assert read(reader, start, reader.latestOffset(start, ALL)) == [1, 2, 3]


@pytest.mark.parametrize("rows_max", [None, 2])
def test_parts_of_a_silver_that_was_computed_again_are_read_together(
    tmp_path: Path, rows_max: int | None
) -> None:
    for batch, numbers in enumerate([range(3, 7), range(1, 3), range(7, 10)]):
        write(tmp_path, numbers, batch, until=9)
    write(tmp_path, range(10, 12), 3)
    reader = SilverReader(str(tmp_path), SCHEMA, rows_max)
    limit = ALL if rows_max is None else ReadMaxRows(rows_max)
    at, found = reader.initialOffset(), []
    while (end := reader.latestOffset(at, limit)) != at:
        found.append(read(reader, at, end))
        at = end
    assert [value for batch in found for value in batch] == list(range(1, 12))
    first = Offset({"s": Position(StreamID(9, 0))}).to_json()
    assert read(reader, reader.initialOffset(), first) == list(range(1, 10))
    inside = Offset({"s": Position(StreamID(4, 0))}).to_json()
    assert read(reader, inside, first) == [5, 6, 7, 8, 9]


def test_rows_of_a_merged_file_are_read_once(tmp_path: Path) -> None:
    reader = SilverReader(str(tmp_path), SCHEMA, None)
    start = reader.initialOffset()
    write(tmp_path, range(1, 4), 0)
    first = reader.latestOffset(start, ALL)
    write(tmp_path, range(1, 8), 1, generation=1)  # batches 0 and 1, merged
    (tmp_path / "_manifest" / "0000000000.json").unlink()
    write(tmp_path, range(8, 10), 2)
    last = reader.latestOffset(first, ALL)
    assert read(reader, first, last) == [4, 5, 6, 7, 8, 9]
    assert read(reader, start, first) == [1, 2, 3]


def test_a_file_that_is_gone_stops_the_query(tmp_path: Path) -> None:
    write(tmp_path, range(1, 4), 0)
    reader = SilverReader(str(tmp_path), SCHEMA, None)
    start = reader.initialOffset()
    parts = reader.partitions(start, reader.latestOffset(start, ALL))
    (tmp_path / "sku=a%2Fb" / "0-0.parquet").unlink()
    with pytest.raises(ArchiveError, match="was replaced by a compaction"):
        list(reader.read(parts[0]))
