"""How long pages without a websocket are kept."""

from __future__ import annotations

import pytest

from tests.web.conftest import NO_UI

pytest.importorskip("nicegui", reason=NO_UI)
from penstock.web.elements.unconnected import (
    UNCONNECTED_MAX,
    UNCONNECTED_SECONDS_MAX,
    UNCONNECTED_SECONDS_MIN,
    allowed_age,
)


def test_few_pages_are_kept_for_the_longest_time() -> None:
    assert allowed_age([]) == UNCONNECTED_SECONDS_MAX
    assert allowed_age([1.0] * UNCONNECTED_MAX) == UNCONNECTED_SECONDS_MAX


def test_of_many_pages_only_the_newest_are_kept() -> None:
    ages = [float(age) for age in range(UNCONNECTED_MAX * 2)]
    assert allowed_age([age / 10 for age in ages]) == UNCONNECTED_MAX / 10
    assert allowed_age([10 * age for age in ages]) == UNCONNECTED_SECONDS_MAX


def test_a_flood_does_not_delete_pages_that_are_about_to_connect() -> None:
    assert allowed_age([0.1] * 10_000) == UNCONNECTED_SECONDS_MIN
