"""Errors and warnings as a user of Spark sees them: short, with the useful line near the top."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill
from tests.support.spark.scripts import run_script

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructField, StructType

from penstock.errors import PenstockError
from penstock.spark.connection import StreamName
from penstock.spark.source.batch_reader import BatchReader, missing_streams
from penstock.spark.source.data_source import entry_schema
from penstock.spark.source.options import parse_options
from penstock.spark.source.planning import StreamState

NO_SERVER = {"url": "redis://127.0.0.1:1"}
COUNT_A_MISSING_STREAM = """
import os
from pyspark.sql import SparkSession
import penstock.spark

spark = SparkSession.builder.master("local[1]").getOrCreate()
penstock.spark.register(spark)
frame = spark.read.format("penstock").options(url=os.environ["PENSTOCK_URL"], stream="ordres").load()
print(frame.count(), "rows")
"""
LINES_MAX = 5  # Spark's own head, one frame, the message, SQLSTATE


def error_of(act: Callable[[], object]) -> list[str]:
    with pytest.raises((PySparkException, PenstockError)) as caught:
        act()
    return str(caught.value).splitlines()


def test_a_missing_url_is_called_missing_and_its_forms_are_shown(spark: Any) -> None:
    lines = error_of(lambda: spark.read.format("penstock").option("stream", "s").load())
    assert len(lines) == LINES_MAX
    assert "OptionError: option url is missing; expected redis://[user:password@]host" in lines[3]


def test_a_missing_stream_option_is_called_missing(spark: Any) -> None:
    lines = error_of(lambda: spark.read.format("penstock").options(**NO_SERVER).load())
    assert lines[3].endswith(
        "option stream is missing; expected the name of a stream, or the option streamPattern"
    )


def test_a_server_that_is_down_is_one_line(spark: Any) -> None:
    frame = spark.read.format("penstock").options(stream="s", **NO_SERVER).load()
    lines = error_of(frame.collect)
    assert len(lines) == LINES_MAX
    assert "Error 111 connecting to 127.0.0.1:1. Connection refused" in lines[3]


def test_a_value_that_does_not_parse_is_one_line(
    penstock: Broker, read: Callable[..., Any]
) -> None:
    fill(penstock.client, "s", 1)
    penstock.client.xadd("s", {"v": "x"})
    lines = error_of(read(penstock, "v int", stream="s", onParseError="fail").collect)
    assert len(lines) == LINES_MAX
    assert "the field v is 'x', which does not fit" in lines[-1]


def test_output_mode_complete_recommends_what_spark_takes(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    fill(penstock.client, "s", 1)
    reader = spark.readStream.format("penstock").options(**penstock.options, stream="s")
    counts = reader.load().groupBy("_stream").count()
    writer = counts.writeStream.format("penstock").options(**penstock.options, stream="out")
    writer = writer.outputMode("complete").option("checkpointLocation", str(tmp_path))
    lines = error_of(lambda: writer.start().awaitTermination())
    assert 'Use outputMode("append"); an aggregation then needs a watermark' in lines[3]
    assert "update" not in lines[3]


def test_a_batch_read_of_a_missing_stream_warns_once(
    penstock: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    options = parse_options({**penstock.options, "stream": "ordres,s"})
    fill(penstock.client, "s", 1)
    schema = StructType([StructField("_id", StringType())])
    with caplog.at_level(logging.WARNING):
        BatchReader(options, entry_schema(schema, options)).partitions()
    where = options.place.servers[0].label
    assert caplog.messages == [f"the stream ordres does not exist on {where}: it has no rows"]


def test_the_warning_reaches_the_terminal_once(penstock: Broker, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(COUNT_A_MISSING_STREAM)
    run = run_script(script, tmp_path, penstock.options["url"])
    assert run.stdout == "0 rows\n", run.stderr[-3000:]
    assert run.stderr.count("the stream ordres does not exist") == 1


def test_a_stream_on_one_of_several_servers_is_not_missing() -> None:
    options = parse_options({"url": "redis://a,redis://b", "stream": "s"})
    there, gone = StreamState(), StreamState(is_missing=True)
    states = {StreamName(b"s", 0): gone, StreamName(b"s", 1): there}
    assert missing_streams(options, states) == []
    states = dict.fromkeys(states, gone)
    assert missing_streams(options, states) == [
        "the stream s does not exist on a:6379/0, b:6379/0: it has no rows"
    ]


def test_a_pattern_that_matches_nothing_warns() -> None:
    options = parse_options({"url": "redis://a", "streamPattern": "s*"})
    assert missing_streams(options, {}) == [
        "no stream on a:6379/0 matches the pattern s*: the read has no rows"
    ]
