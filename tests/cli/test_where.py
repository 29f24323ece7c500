"""Conditions on the fields of an entry."""

from __future__ import annotations

import pytest
import typer

from penstock.cli.terminal.outcome import Failure
from penstock.cli.terminal.where import parse_condition

FIELDS = [(b"sku", b"A1"), (b"note", "größe 3".encode()), (b"raw", b"\xff\x00"), (b"sku", b"B2")]
BODY = (
    b'{"customer": {"id": 18446744073709551615, "name": "Zo\xc3\xab"}, "ok": true, "no": null,'
    b' "price": 1.50, "lines": [{"sku": "A1"}, {"sku": "B2"}], "odd": NaN}'
)


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


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("body$.customer.id=18446744073709551615", True),
        ("body$.customer.name~^Zo", True),
        ("body$.customer=x", False),
        ("body$.customer!=x", True),
        ("body$.price=1.50", True),
        ("body$.price=1.5", False),
        ("body$.ok=true", True),
        ("body$.no=null", True),
        ("body$.odd=NaN", True),
        ("body$.lines[1].sku=B2", True),
        ("body$.lines[2].sku!=B2", True),
        ("body$.lines[2].sku~.*", False),
        ("body$.lines.sku~.*", False),
        ("body$.ok.deeper~.*", False),
        ("body$.customer.name[0]~.*", False),
        ("other$.customer.id~.*", False),
        ("text$.a=1", False),
        ("deep$.a=1", False),
    ],
)
def test_a_condition_can_look_inside_json(condition: str, holds: bool) -> None:
    fields = [(b"body", BODY), (b"text", b"{no json"), (b"deep", b"[" * 100_000)]
    assert parse_condition(condition)(fields) is holds


def test_a_regular_expression_that_backtracks_forever_is_stopped() -> None:
    condition = parse_condition("a~^(a|aa)+$")
    with pytest.raises(Failure, match="takes more than"):
        condition([(b"a", b"a" * 60 + b"b")])


@pytest.mark.parametrize("condition", ["", "sku", "sku~(", "sku~*", "sku~a{99999999999}"])
def test_an_invalid_condition_is_refused(condition: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_condition(condition)
