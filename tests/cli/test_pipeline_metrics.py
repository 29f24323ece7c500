"""The metrics of a pipeline, read by Prometheus's own parser."""

from __future__ import annotations

from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("pyspark")

from penstock.cli.pipeline_metrics import PipelineMetrics
from penstock.core.stream_id import StreamID
from penstock.errors import ConfigError
from penstock.spark.pipeline.progress import BatchRecord
from penstock.spark.source.offsets import Offset, Position


def record(output: str, read: int, lag: int | None, seconds: float = 0.3) -> BatchRecord:
    return BatchRecord("shop", output, 1, "now", read, read - 1, 1.0, seconds, lag=lag, late=2)


def test_batches_are_counted_by_output() -> None:
    with PipelineMetrics('a "shop"', 0) as metrics:
        for one in (record("main", 10, 5), record("main", 20, 3, 400.0), record("gold", 7, None)):
            metrics.take(one)
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            text = answer.read().decode()
        with urlopen(f"http://127.0.0.1:{metrics.port}/healthz") as answer:
            assert answer.read() == b"ok\n"
    samples = {
        (one.name, one.labels["output"], one.labels.get("le")): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.labels["pipeline"] == 'a "shop"'
    }
    assert samples["penstock_pipeline_read_total", "main", None] == 30
    assert samples["penstock_pipeline_written_total", "main", None] == 28
    assert samples["penstock_pipeline_late_total", "gold", None] == 2
    assert samples["penstock_pipeline_lag", "main", None] == 3
    assert ("penstock_pipeline_lag", "gold", None) not in samples
    assert samples["penstock_pipeline_batch_seconds_bucket", "main", "0.5"] == 1
    assert samples["penstock_pipeline_batch_seconds_count", "main", None] == 2


def test_the_lag_is_that_of_the_scrape() -> None:
    asked: list[Offset] = []

    def lag_of(end: Offset) -> int | None:
        asked.append(end)
        return 40 if end.streams else None

    ends = {"main": Offset({"orders": Position(StreamID(5, 0), 7)}), "gold": Offset({})}
    with PipelineMetrics("shop", 0, lag_of=lag_of) as metrics:
        for output, query in (("bronze", "main"), ("silver", "main"), ("gold", "gold")):
            metrics.take(replace(record(output, 1, 0), query=query, end=ends[query]))
        text = metrics.text()
    lines = text.splitlines()
    for output in ("bronze", "silver"):
        assert f'penstock_pipeline_lag{{pipeline="shop",output="{output}"}} 40' in lines
        assert f'last_batch_timestamp_seconds{{pipeline="shop",output="{output}"}} ' in text
    assert not any("lag" in line and "gold" in line for line in lines)  # unknown
    assert len(asked) == 2  # once for each query


def test_a_pipeline_is_ready_when_batches_may_come() -> None:
    with PipelineMetrics("shop", 0) as metrics:
        address = f"http://127.0.0.1:{metrics.port}/readyz"
        with pytest.raises(HTTPError, match="503") as refused:
            urlopen(address)
        assert refused.value.read() == b"Spark is starting\n"
        metrics.waits_for = ""
        with urlopen(address) as answer:
            assert answer.read() == b"ready\n"


def test_a_port_in_use_is_refused() -> None:
    with (
        PipelineMetrics("shop", 0) as first,
        pytest.raises(ConfigError, match="cannot serve metrics on port"),
    ):
        PipelineMetrics("shop", first.port)
