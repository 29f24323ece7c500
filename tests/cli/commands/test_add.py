"""`penstock add`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command_line import CommandLine

LARGEST = "18446744073709551615-18446744073709551615"


def stored(penstock: CommandLine) -> list[dict[bytes, bytes]]:
    found: Any = penstock.server.client.xrange("s")
    return [fields for _, fields in found]


def test_an_entry_is_added_and_its_id_printed(penstock: CommandLine) -> None:
    (id_,) = penstock.lines("add", "s", "sku=A1", "note=a=b c", "empty=")
    assert penstock.server.client.xrange("s") == [
        (id_.encode(), {b"sku": b"A1", b"note": b"a=b c", b"empty": b""})
    ]


def test_an_id_may_be_given(penstock: CommandLine) -> None:
    assert penstock.lines("add", "s", "a=1", "--id", "5-1") == ["5-1"]
    assert penstock.lines("add", "s", "a=1", "--id", "5-*") == ["5-2"]
    code, line = penstock.error("add", "s", "a=1", "--id", "5-1")
    assert (code, line) == (
        1,
        "s: The ID specified in XADD is equal or smaller than the target stream top item",
    )
    assert penstock.lines("add", "s", "a=1", "--id", LARGEST) == [LARGEST]


def test_bytes_that_are_not_utf8_are_stored_as_they_are(penstock: CommandLine) -> None:
    penstock.lines("add", "s", "a=\udcff\x1b")
    assert stored(penstock) == [{b"a": b"\xff\x1b"}]


def test_the_stream_is_trimmed(penstock: CommandLine) -> None:
    for number in range(1, 6):
        penstock.lines("add", "s", f"a={number}", "--id", f"{number}-0", "--maxlen", "3", "--exact")
    assert len(stored(penstock)) == 3
    penstock.lines("add", "s", "a=6", "--id", "6-0", "--maxlen", "1")
    assert len(stored(penstock)) == 4  # approximate by default: it drops whole nodes only
    penstock.lines("add", "s", "a=7", "--id", "7-0", "--minid", "6", "--exact")
    assert stored(penstock) == [{b"a": b"6"}, {b"a": b"7"}]


def test_no_create_needs_the_stream(penstock: CommandLine) -> None:
    expected = (1, "s: no such stream, and --no-create was given")
    assert penstock.error("add", "s", "a=1", "--no-create") == expected
    code, line = penstock.error("add", "s", "-", "--no-create", stdin='{"a":1}\n')
    assert (code, line) == (1, f"line 1: {expected[1]}; 0 added")
    assert not penstock.server.client.exists("s")
    penstock.lines("add", "s", "a=1")
    penstock.lines("add", "s", "a=2", "--no-create")
    assert len(stored(penstock)) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["s"],
        ["s", "novalue"],
        ["s", "a=1", "--maxlen", "5", "--minid", "5"],
        ["s", "a=1", "--exact"],
        ["s", "a=1", "--maxlen", "-1"],
        ["s", "a=1", "--maxlen", "many"],
        ["s", "a=1", "-"],
        ["s", "a=1", "--stdin"],
        ["s", "-", "--id", "5-1"],
        [],
    ],
)
def test_a_wrong_command_line_is_refused(penstock: CommandLine, words: list[str]) -> None:
    code, line = penstock.error("add", *words)
    assert code == 2
    assert line.endswith("see penstock add --help")
    assert not penstock.server.client.keys()


@pytest.mark.parametrize("flag", ["-", "--stdin"])
def test_lines_of_json_are_entries(penstock: CommandLine, flag: str) -> None:
    ids = penstock.lines("add", "s", flag, stdin='{"a": "x", "n": 1}\n\n{"a": ["y"]}')
    found: Any = penstock.server.client.xrange("s")
    assert [id_.decode() for id_, _ in found] == ids
    assert stored(penstock) == [{b"a": b"x", b"n": b"1"}, {b"a": b'["y"]'}]


def test_quiet_prints_no_ids(penstock: CommandLine) -> None:
    assert penstock.lines("add", "s", "a=1", "-q") == []
    assert penstock.lines("add", "s", "-", "--quiet", stdin='{"a":1}') == []
    assert len(stored(penstock)) == 2


def test_empty_input_adds_nothing(penstock: CommandLine) -> None:
    assert penstock.lines("add", "s", "-", stdin="") == []
    assert penstock.lines("add", "s", "-", stdin="\n \n") == []


def test_a_bad_line_is_named_and_earlier_lines_are_added(penstock: CommandLine) -> None:
    result = penstock.run("add", "s", "-", stdin='{"a":1}\n{"a":2}\n\n{"a":\n{"a":4}\n')
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "penstock: line 4: not JSON at column 6: Expecting value; 2 added\n"
    assert stored(penstock) == [{b"a": b"1"}, {b"a": b"2"}]


def test_a_refusal_names_the_line(penstock: CommandLine) -> None:
    penstock.server.client.set("s", "text")
    code, line = penstock.error("add", "s", "-", stdin='{"a":1}\n{"a":2}\n')
    assert code == 1
    assert line.startswith("line 1: s: WRONGTYPE ")
    assert line.endswith("; 0 added")


def test_large_input_is_sent_in_many_batches(penstock: CommandLine) -> None:
    count = 5000
    lines = "".join(f'{{"n": {number}, "text": "{"x" * 30}"}}\n' for number in range(count))
    assert len(penstock.lines("add", "s", "-", stdin=lines)) == count
    assert [fields[b"n"] for fields in stored(penstock)] == [b"%d" % n for n in range(count)]


def test_a_large_value_goes_through(penstock: CommandLine) -> None:
    value = "x" * (1 << 20)
    penstock.lines("add", "s", "-", stdin=f'{{"a":"{value}"}}\n')
    penstock.lines("add", "s", f"a={value}")
    assert stored(penstock) == [{b"a": value.encode()}] * 2
