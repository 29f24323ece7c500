"""Conditions on the fields of an entry."""

from __future__ import annotations

import pytest
import typer

from penstock.cli.where import parse_condition

FIELDS = [(b"sku", b"A1"), (b"note", "größe 3".encode()), (b"raw", b"\xff\x00"), (b"sku", b"B2")]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("sku=A1", True),
        ("sku=B2", True),
        ("sku=A", False),
        ("sku!=A1", False),
        ("sku!=C", True),
        ("none!=x", True),
        ("none=", False),
        ("sku~^A", True),
        ("sku~1$", True),
        ("sku~^1", False),
        ("note~ö.e", True),
        ("note~[=!~]", False),
        ("none~.*", False),
        ("raw=\udcff\0", True),
        ("raw~^\udcff", True),
    ],
)
def test_a_condition_looks_at_every_field_of_that_name(condition: str, holds: bool) -> None:
    assert parse_condition(condition)(FIELDS) is holds


@pytest.mark.parametrize("condition", ["", "sku", "sku~(", "sku~*", "sku~a{99999999999}"])
def test_what_is_no_condition_is_refused(condition: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_condition(condition)
