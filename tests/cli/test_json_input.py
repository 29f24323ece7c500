"""Entries as JSON lines."""

from __future__ import annotations

import io

import pytest

from penstock.cli.terminal.json_input import CHUNK_BYTES, JsonInput, parse_entry


class Trickle(io.BytesIO):
    """A pipe with a slow writer: every read returns a few bytes."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self.step = step

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.step)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b'{"a": "x"}', [(b"a", b"x")]),
        (b'{"a": 1, "b": true, "c": null}', [(b"a", b"1"), (b"b", b"true"), (b"c", b"null")]),
        (b'{"a": {"b": [1, "\xc3\xa9"]}}', [(b"a", '{"b":[1,"é"]}'.encode())]),
        (b'{"a": "1", "a": "2"}', [(b"a", b"1"), (b"a", b"2")]),
        (b'{"": ""}', [(b"", b"")]),
        (b'{"a": "\\u0000"}\r', [(b"a", b"\0")]),
        (b'{"a": 123456789012345678901234567890}', [(b"a", b"123456789012345678901234567890")]),
    ],
)
def test_a_line_is_an_entry(line: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    assert parse_entry(line) == fields


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{}", "at least one field"),
        (b"[1]", "not a JSON object"),
        (b'"a"', "not a JSON object"),
        (b"{", "not JSON at column 2"),
        (b'{"a": 1} x', "not JSON at column 10"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"a": {"b": "\\ud800"}}', "surrogate"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": 1e999}', "not JSON compliant"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "digits"),
    ],
)
def test_an_invalid_line_is_explained(line: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_entry(line)


@pytest.mark.parametrize("step", [1, 7, CHUNK_BYTES])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_are_found_however_they_arrive(step: int, end: bytes) -> None:
    source = JsonInput(Trickle(b'{"a":"1"}\n\n \n{"a":"2"}\n{"a":"3"}' + end, step))
    lines = [line for batch in source.batches() for line in batch]
    assert [(line.number, line.fields[0][1]) for line in lines] == [(1, b"1"), (4, b"2"), (5, b"3")]
    assert source.problem_or_none is None


def test_nothing_after_a_bad_line_is_read() -> None:
    source = JsonInput(io.BytesIO(b'{"a":"1"}\nbad\n{"a":"3"}\n'))
    assert [[line.number for line in batch] for batch in source.batches()] == [[1]]
    assert source.problem_or_none == "line 2: not JSON at column 1: Expecting value"


def test_the_size_of_a_pipe_is_not_known() -> None:
    assert JsonInput(io.BytesIO(b"")).bytes_total_or_none is None
