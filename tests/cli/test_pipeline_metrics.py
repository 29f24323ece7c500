"""The metrics of a pipeline, read by Prometheus's own parser."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("pyspark")

from penstock.cli import pipeline_metrics
from penstock.cli.pipeline_metrics import LAG_STREAMS_MAX, LagWatch, PipelineMetrics
from penstock.core.stream_id import StreamID
from penstock.errors import ConfigError
from penstock.spark.pipeline.progress import BatchRecord
from penstock.spark.source.offsets import Offset, Position

SECONDS_MAX = 30.0
BEGIN = Offset({"orders": Position(StreamID(1, 0), 1)})
END = Offset({"orders": Position(StreamID(5, 0), 7)})


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


class Source:
    """A server that answers about the lag when it is let go."""

    def __init__(self) -> None:
        self.asked: list[Offset] = []
        self.free = threading.Event()
        self.closed = threading.Event()

    def watch(self) -> LagWatch:
        return LagWatch(self.lag_of, lambda: BEGIN, self.closed.set)

    def lag_of(self, end: Offset) -> int | None:
        self.asked.append(end)
        self.free.wait(SECONDS_MAX)
        return None if not end.streams else 3 if end == BEGIN else 40


def lags_of(metrics: PipelineMetrics) -> dict[str, float]:
    return {
        one.labels["output"]: one.value
        for family in text_string_to_metric_families(metrics.text())
        for one in family.samples
        if one.name == "penstock_pipeline_lag"
    }


def wait_for_lags(metrics: PipelineMetrics, wanted: dict[str, float]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while (found := lags_of(metrics)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


def test_the_lag_is_asked_for_between_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_metrics, "LAG_SECONDS", 0.01)
    source = Source()
    source.free.set()
    ends = {"main": END, "gold": Offset({})}
    with PipelineMetrics("shop", 0, lags=source.watch()) as metrics:
        for output, query in (("bronze", "main"), ("silver", "main"), ("gold", "gold")):
            metrics.take(replace(record(output, 1, 0), query=query, end=ends[query]))
        wait_for_lags(metrics, {"bronze": 40, "silver": 40})  # that of gold is unknown
        asked = len(source.asked)
        text = metrics.text()
        monkeypatch.setattr(pipeline_metrics, "LAG_AGE_SECONDS_MAX", -1)
        assert lags_of(metrics) == {}  # too old
    assert 'last_batch_timestamp_seconds{pipeline="shop",output="gold"} ' in text
    assert asked > 0
    assert source.closed.wait(SECONDS_MAX)


def test_a_server_that_does_not_answer_delays_neither_scrape_nor_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline_metrics, "LAG_SECONDS", 0.01)
    source = Source()
    with PipelineMetrics("shop", 0, lags=source.watch()) as metrics:
        metrics.take(replace(record("bronze", 1, 7), end=END))
        deadline = time.monotonic() + SECONDS_MAX
        while not source.asked:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=SECONDS_MAX) as answer:
            assert b'penstock_pipeline_lag{pipeline="shop",output="bronze"} 7' in answer.read()
    assert not source.closed.is_set()  # the thread still waits, and nobody waits for it
    source.free.set()
    assert source.closed.wait(SECONDS_MAX)


def test_very_many_streams_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_metrics, "LAG_SECONDS", 0.01)
    source = Source()
    position = Position(StreamID(5, 0), 7)
    many = Offset({f"s{number}": position for number in range(LAG_STREAMS_MAX + 1)})
    with PipelineMetrics("shop", 0, lags=source.watch()) as metrics:
        metrics.take(replace(record("bronze", 1, 7), query="main", end=many))
        assert lags_of(metrics) == {"bronze": 7}  # of the batch, however old it is
        metrics.take(replace(record("gold", 1, 7), query="gold", end=END))
        source.free.set()
        wait_for_lags(metrics, {"bronze": 7, "gold": 40})
    assert many not in source.asked


def test_a_first_batch_that_hangs_can_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_metrics, "LAG_SECONDS", 0.01)
    source = Source()
    source.free.set()
    before = time.time()
    with PipelineMetrics("shop", 0, lags=source.watch()) as metrics:
        metrics.begin({"bronze": "main", "silver": "main"})
        wait_for_lags(metrics, {"bronze": 3, "silver": 3})  # what came since the start
        samples = {
            one.labels["output"]: one.value
            for family in text_string_to_metric_families(metrics.text())
            for one in family.samples
            if one.name == "penstock_pipeline_last_batch_timestamp_seconds"
        }
        assert all(before <= samples[output] <= time.time() for output in ("bronze", "silver"))
        metrics.take(replace(record("bronze", 1, 0), query="main", end=END))
        wait_for_lags(metrics, {"bronze": 40, "silver": 40})


def test_a_pipeline_is_ready_when_batches_may_come() -> None:
    with PipelineMetrics("shop", 0) as metrics:
        address = f"http://127.0.0.1:{metrics.port}/readyz"
        with pytest.raises(HTTPError, match="503") as refused:
            urlopen(address)
        assert refused.value.read() == b"Spark is starting\n"
        metrics.begin({})
        with urlopen(address) as answer:
            assert answer.read() == b"ready\n"


def test_a_port_in_use_is_refused() -> None:
    with (
        PipelineMetrics("shop", 0) as first,
        pytest.raises(ConfigError, match="cannot serve metrics on port"),
    ):
        PipelineMetrics("shop", first.port)
