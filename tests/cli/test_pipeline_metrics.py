"""The metrics of a pipeline, read by Prometheus's own parser."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("pyspark")

from penstock.cli.pipeline_metrics import PipelineMetrics
from penstock.errors import ConfigError
from penstock.spark.pipeline.progress import BatchRecord


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
