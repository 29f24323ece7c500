"""The entries of bronze, with the columns that the source would give them.

Bronze has every entry as it was added. The same parsers as in the source (source/schema.py) make the columns,
so an entry gets the same values and the same rejects whether it comes from the server or from bronze.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.rows import frames
from penstock.spark.replay import entries_of
from penstock.spark.source.schema import Entry, EntrySchema, Page


def archived_entries(bronze: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The entries of bronze as the source gives them, without the raw fields."""
    spark = bronze.sparkSession
    schema = frames.schema_of(spark, pipeline)
    columns = EntrySchema(to_arrow_schema(schema, timezone="UTC"))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for page in pages_of(batch):
                yield columns.batch(page)

    stored = bronze.select("_stream", "_id", entries_of(bronze).alias("fields"))
    return stored.mapInArrow(read, schema)


def pages_of(batch: pa.RecordBatch) -> list[Page]:
    """The entries of a batch by stream, as the server would send them."""
    fields = batch.column("fields")
    pairs = fields.flatten()
    names, values = (pairs.field(at).to_pylist() for at in (0, 1))
    ends = fields.value_lengths().to_pylist()
    found: dict[str, list[Entry]] = {}
    start = 0
    rows = zip(batch.column("_stream").to_pylist(), batch.column("_id").to_pylist(), strict=True)
    for (stream, entry_id), count in zip(rows, ends, strict=True):
        end = start + count
        words = [
            word for pair in zip(names[start:end], values[start:end], strict=True) for word in pair
        ]
        found.setdefault(stream, []).append((entry_id.encode(), words))
        start = end
    return [Page(stream.encode(), entries) for stream, entries in found.items()]
