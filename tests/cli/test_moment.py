"""Times and durations as people type them."""

from __future__ import annotations

import pytest
import typer

from penstock.cli.terminal.moment import Ago, Edge, Moment, parse_duration, parse_moment
from penstock.core.stream_id import LARGEST, StreamID

NOON_MS = 1714564800000  # 2024-05-01T12:00Z


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("start", Edge.START),
        ("end", Edge.END),
        ("5", StreamID(5, 0)),
        ("5-3", StreamID(5, 3)),
        ("1700000000000", StreamID(1700000000000, 0)),
        ("18446744073709551615-18446744073709551615", LARGEST),
        ("@1700000000000", StreamID(1700000000000, 0)),
        ("10m", Ago(600_000)),
        ("1h30m", Ago(5_400_000)),
        ("2024-05-01T12:00", StreamID(NOON_MS, 0)),
        ("2024-05-01 12:00:00.250", StreamID(NOON_MS + 250, 0)),
        ("2024-05-01T12:00Z", StreamID(NOON_MS, 0)),
        ("2024-05-01T14:00+02:00", StreamID(NOON_MS, 0)),
        ("2024-05-01", StreamID(NOON_MS - 12 * 3_600_000, 0)),
    ],
)
def test_a_time_is_a_word_an_id_a_date_or_a_duration_ago(text: str, moment: Moment) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "-5m",
        "5-",
        "5-3-1",
        " 5-3",
        "18446744073709551616",
        "5-18446744073709551616",
        "9" * 5000,
        "@18446744073709551616",
        "@",
        "@-1",
        "10x",
        "1" * 13 + "s",
        "1969-12-31",
        "2024-13-01",
        "٣m",
        "$",
        "+",
    ],
)
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_moment(text)


def test_ago_stops_at_1970() -> None:
    assert Ago(1000).at(5000) == StreamID(4000, 0)
    assert Ago(9000).at(5000) == StreamID(0, 0)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0s", 0), ("250ms", 250), ("1.5s", 1500), ("1h30m", 5_400_000), ("2w", 1_209_600_000)],
)
def test_a_duration_is_numbers_with_units(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "5mm", "1e3s", "5m "])
def test_a_duration_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_duration(text)
