"""The text format is what Prometheus's own parser reads, whatever the labels are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from penstock.metrics.histogram import Histogram
from penstock.metrics.text import COUNTER, GAUGE, HISTOGRAM, Page


def parsed(page: Page) -> dict[str, list[tuple[str, dict[str, str], float]]]:
    return {
        family.name: [(one.name, one.labels, one.value) for one in family.samples]
        for family in text_string_to_metric_families(page.text())
    }


def test_families_are_read_back() -> None:
    page = Page()
    length = page.family("p_length", GAUGE, "Entries.\nOf a stream \\ key.")
    page.counter("p_calls_total", "Calls.", 7)
    length.add(3, db="0", stream="orders")
    length.add(2.5, db="1", stream="a")
    page.family("p_empty", COUNTER, "It has no samples.")
    assert parsed(page) == {
        "p_length": [
            ("p_length", {"db": "0", "stream": "orders"}, 3.0),
            ("p_length", {"db": "1", "stream": "a"}, 2.5),
        ],
        "p_calls": [("p_calls_total", {}, 7.0)],
    }
    documented = next(iter(text_string_to_metric_families(page.text())))
    assert documented.documentation == "Entries.\nOf a stream \\ key."


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_label_is_read_back(label: str) -> None:
    page = Page()
    page.family("p_length", GAUGE, "Entries.").add(1, stream=label)
    # The parser splits lines as str.splitlines does. The format knows only the line feed, which is escaped.
    if len(page.text().splitlines()) == 3:
        assert parsed(page)["p_length"] == [("p_length", {"stream": label}, 1.0)]
    else:
        assert page.text().count("\n") == 3


def test_a_histogram_counts_up_to_each_limit() -> None:
    times = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 3.0, -1.0):
        times.note(seconds)
    times.note(0.25, times=4)
    page = Page()
    page.family("p_seconds", HISTOGRAM, "Durations.").add_histogram(times, kind="a")
    samples = parsed(page)["p_seconds"]
    assert [(labels["le"], value) for name, labels, value in samples if "le" in labels] == [
        ("0.1", 3.0),
        ("1", 8.0),
        ("+Inf", 9.0),
    ]
    assert ("p_seconds_count", {"kind": "a"}, 9.0) in samples
    assert ("p_seconds_sum", {"kind": "a"}, 4.65) in samples
