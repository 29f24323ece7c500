"""Tables: only shown rows can be selected."""

from __future__ import annotations

import pytest

pytest.importorskip("nicegui", reason="the extra `ui` is not installed: make build")
from penstock.web.elements.table import shown_keys


def test_only_shown_rows_can_be_selected() -> None:
    rows = [{"key": "1-0"}, {"key": "2-0"}]
    assert shown_keys(["2-0", "3-0", "1-0"], rows) == ["2-0", "1-0"]
    assert shown_keys(["1-0"], []) == []


@pytest.mark.parametrize("told", [None, "1-0", 7, {"1-0": 1}, [["1-0"], None, 1]])
def test_anything_but_a_list_of_keys_selects_nothing(told: object) -> None:
    assert shown_keys(told, [{"key": "1-0"}]) == []
