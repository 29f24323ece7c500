"""Rings of samples, rates, sparklines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.web.model.rates import Meter, Series, points, rate_text, sum_of_known


@given(st.lists(st.integers(0, 100) | st.none(), max_size=40), st.integers(1, 10))
def test_a_series_keeps_the_newest_samples(values: list[int | None], size: int) -> None:
    series = Series(2, size)
    for value in values:
        series.add(value, 1)
    assert [row[0] for row in series.rows()] == values[-size:]
    assert series.last() == ((values[-1], 1) if values else None)


def test_a_rate_is_the_difference_of_two_counters() -> None:
    meter = Meter()
    meter.note(10.0, 100, {b"g": 50})
    assert meter.series.last() is None
    meter.note(12.0, 300, {b"g": 50})
    assert (meter.rate_in, meter.rate_out) == (100.0, 0.0)


def test_two_looks_in_one_moment_are_one_sample() -> None:
    meter = Meter()
    meter.note(1.0, 100, {})
    meter.note(1.01, 150, {})  # a burst: 5,000 in a second
    assert meter.rate_in is None
    meter.note(2.0, 200, {})
    assert meter.rate_in == 100.0


def test_a_counter_that_fell_has_no_rate() -> None:
    meter = Meter()
    meter.note(1.0, 100, {})
    meter.note(2.0, 5, {})
    assert meter.rate_in is None


def test_a_group_that_was_never_read_does_not_hide_the_rate_of_others() -> None:
    meter = Meter()
    meter.note(1.0, 0, {b"read": 10, b"new": None, b"again": 7})
    meter.note(2.0, 0, {b"read": 30, b"new": None, b"again": 3})
    assert meter.rate_out == 20.0
    meter.note(3.0, 0, {b"new": None})
    assert meter.rate_out is None


def test_a_sum_leaves_out_what_is_unknown() -> None:
    assert sum_of_known([1.5, None, 2.0]) == 3.5
    assert sum_of_known([None, None]) is None
    assert sum_of_known([]) == 0


def test_a_sparkline_has_its_largest_value_at_the_top() -> None:
    assert points([0, 10, 5], 100, 20) == "0.0,20.0 50.0,0.0 100.0,10.0"
    assert points([], 100, 20) == ""
    assert points([None, 1], 100, 20) == "100.0,0.0"


def test_rates_are_short() -> None:
    assert [rate_text(rate) for rate in (None, 0, 0.25, 12345.6)] == [
        "-",
        "0/s",
        "0.2/s",
        "12,346/s",
    ]
