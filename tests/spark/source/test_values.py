"""Parsing values of each type, with the compiled decoder and in Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install penstock[spark]")
values = pytest.importorskip("penstock.spark.source.values")

UTC = pa.timestamp("us", "UTC")
CASES = [
    (pa.bool_(), {b"true": True, b"T": True, b"0": False, b"No": False}, [b"", b"2", b"on"]),
    (pa.int8(), {b"127": 127, b"-128": -128, b"+1": 1, b"007": 7}, [b"128", b"", b"1.0", b" 1"]),
    (pa.int64(), {b"9223372036854775807": 2**63 - 1}, [b"9223372036854775808", b"0x1", b"1_0"]),
    (pa.float64(), {b"1.5": 1.5, b"-2e3": -2000.0, b".5": 0.5, b"INF": float("inf")}, [b"1,5"]),
    (pa.float32(), {b"0.1": 0.10000000149011612}, [b"", b"x"]),
    (pa.string(), {b"": "", "ä".encode(): "ä", b"a\x00b": "a\x00b"}, [b"\xff"]),
    (pa.binary(), {b"\xff\x00": b"\xff\x00"}, []),
    (pa.date32(), {b"2024-02-29": "2024-02-29"}, [b"2023-02-29", b"2024-2-9", b"20240229"]),
    (
        UTC,
        {
            b"2024-02-29T10:20:30Z": "2024-02-29 10:20:30+00:00",
            b"2024-02-29 10:20:30.5+02:00": "2024-02-29 08:20:30.500000+00:00",
            b"2024-02-29T10:20:30": "2024-02-29 10:20:30+00:00",
        },
        [b"2024-02-29", b"1700000000000", b"2024-02-29T10:20:30X", b"2024-02-29T25:00:00Z"],
    ),
    (
        pa.timestamp("us"),
        {b"2024-02-29T10:20:30.000001": "2024-02-29 10:20:30.000001"},
        [b"2024-02-29T10:20:30Z"],
    ),
    (pa.time64("ns"), {b"10:20:30.25": "10:20:30.250000"}, [b"24:00:00", b"10:20"]),
    (
        pa.duration("us"),
        {b"P1DT2H": "1 day, 2:00:00", b"-PT0.5S": "-1 day, 23:59:59.500000"},
        [b"P"],
    ),
    (pa.decimal128(5, 2), {b"123.45": "123.45", b"1e2": "100.00"}, [b"1000", b"1.234", b"nan"]),
    (pa.list_(pa.int32()), {b"[1, 2, null]": [1, 2, None]}, [b"[1.5]", b"{}", b"[", b"1"]),
    (pa.map_(pa.string(), pa.float64()), {b'{"a": 1}': [("a", 1.0)]}, [b"[]", b'{"a": "x"}']),
    (
        pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.binary())]),
        {b'{"a": 1, "b": "AP8="}': {"a": 1, "b": b"\x00\xff"}},
        [b"{}", b'{"a": null}', b'{"a": 1, "b": "?"}', b"null"],
    ),
]


@pytest.mark.parametrize(("kind", "good", "bad"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_text_is_a_value_of_its_type_or_null(
    kind: object, good: dict[bytes, object], bad: list[bytes]
) -> None:
    for text, expected in good.items():
        made, wrong = values.convert([text, None], kind)
        shown = made[0].as_py()
        assert wrong == []
        assert shown == expected or str(shown) == expected
        assert made[1].as_py() is None
        assert made.type == kind
    for text in bad:
        made, wrong = values.convert([text], kind)
        assert (made.to_pylist(), wrong) == ([None], [0]), text


KINDS = [pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.date32(), UTC, pa.string()]
TEXTS = st.binary(max_size=12) | st.from_regex(
    r"\A-?[0-9]{1,20}(\.[0-9]{1,3})?\Z|\A[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?\Z"
).map(str.encode)


@given(st.sampled_from(KINDS), TEXTS)
def test_a_column_parses_like_its_single_values(kind: object, text: bytes) -> None:
    try:
        expected = values.parser_of(kind)(text)
    except (ValueError, OverflowError):
        expected = None
    made, _ = values.convert([text], kind)
    assert made[0].as_py() == expected


def test_a_type_that_text_cannot_express_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be read from text"):
        values.parser_of(pa.month_day_nano_interval())
