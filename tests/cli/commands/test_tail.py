"""`penstock tail` without a group."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import CommandLine

LARGEST = "18446744073709551615-18446744073709551615"


def fill(penstock: CommandLine, stream: str, *ids: str) -> None:
    for id_ in ids:
        penstock.server.client.xadd(stream, {"n": id_}, id=id_)


def ids(penstock: CommandLine, *words: str) -> list[str]:
    return penstock.lines("tail", *words, "--format", "{id}")


def test_an_entry_is_a_line(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"sku": "A1", "note": "two words"}, id="1000-1")
    assert penstock.lines("tail", "s", "--no-follow") == [
        '1970-01-01T00:00:01.000Z  1000-1  sku=A1 note="two words"'
    ]


def test_json_is_one_object_per_line(penstock: CommandLine) -> None:
    fill(penstock, "s", "1-0", LARGEST)
    assert [json.loads(line) for line in penstock.lines("tail", "s", "--no-follow", "--json")] == [
        {"stream": "s", "id": "1-0", "time": "1970-01-01T00:00:00.001Z", "fields": {"n": "1-0"}},
        {"stream": "s", "id": LARGEST, "time": None, "fields": {"n": LARGEST}},
    ]


def test_the_ends_of_a_range(penstock: CommandLine) -> None:
    fill(penstock, "s", "1-0", "1-1", "2-0", "3-0", "3-1")
    assert ids(penstock, "s", "--no-follow") == ["1-0", "1-1", "2-0", "3-0", "3-1"]
    assert ids(penstock, "s", "--no-follow", "--from", "1-1") == ["1-1", "2-0", "3-0", "3-1"]
    assert ids(penstock, "s", "--no-follow", "--from", "2") == ["2-0", "3-0", "3-1"]
    assert ids(penstock, "s", "--no-follow", "--until", "3") == ["1-0", "1-1", "2-0"]
    assert ids(penstock, "s", "--from", "start", "--until", "3-1")[-1] == "3-0"
    assert ids(penstock, "s", "--from", "start", "--until", "end")[-1] == "3-1"
    assert ids(penstock, "s", "--from", "@2", "--until", "1970-01-01T00:00:00.003") == ["2-0"]
    assert ids(penstock, "s", "--no-follow", "--from", "end") == []
    assert ids(penstock, "s", "--no-follow", "--from", "1h") == []
    assert ids(penstock, "s", "--no-follow", "--from", "99999w") == ids(
        penstock, "s", "--no-follow"
    )


def test_count_stops(penstock: CommandLine) -> None:
    fill(penstock, "s", "1-0", "2-0", "3-0")
    assert ids(penstock, "s", "--from", "start", "-n", "2") == ["1-0", "2-0"]
    assert ids(penstock, "s", "--no-follow", "-n", str(2**70)) == ["1-0", "2-0", "3-0"]


def test_many_streams_are_shown_in_the_order_of_ids(penstock: CommandLine) -> None:
    """More than a page per stream, at different rates, so that pages end at different ids."""
    pipeline = penstock.server.client.pipeline()
    for number in range(1, 701):
        pipeline.xadd("often", {"n": 1}, id=f"{number}-0")
    for number in range(5, 701, 5):
        pipeline.xadd("seldom", {"n": 1}, id=f"{number}-1")
    pipeline.xadd("once", {"n": 1}, id="350-2")
    pipeline.execute()
    shown = ids(penstock, "often", "seldom", "once", "--no-follow")
    order = [tuple(map(int, id_.split("-"))) for id_ in shown]
    assert len(order) == 700 + 140 + 1
    assert order == sorted(order)


def test_the_stream_is_named_when_there_are_several(penstock: CommandLine) -> None:
    fill(penstock, "a", "1-0")
    fill(penstock, "b", "1-0")
    lines = penstock.lines("tail", "a", "b", "a", "--no-follow")
    assert [line.split()[0] for line in lines] == ["a", "b"]


def test_conditions_must_all_hold(penstock: CommandLine) -> None:
    client = penstock.server.client
    client.xadd("s", {"sku": "A1", "qty": "0"}, id="1-0")
    client.xadd("s", {"sku": "A2", "qty": "5"}, id="2-0")
    client.xadd("s", {"sku": "B1", "qty": "5"}, id="3-0")
    assert ids(penstock, "s", "--no-follow", "--where", "sku~^A", "--where", "qty!=0") == ["2-0"]
    assert ids(penstock, "s", "--from", "start", "--where", "qty=5", "-n", "2") == ["2-0", "3-0"]


@pytest.mark.parametrize("form", [[], ["--json"], ["--format", "{stream} {fields} {field[k]}"]])
def test_data_is_harmless_to_the_terminal(penstock: CommandLine, form: list[str]) -> None:
    evil = b"[red]x[/]\x1b]0;evil\x07\x00\xff\x9b\xc2\x9b\x7f\r\n{id}\xe2\x80\xae"
    penstock.server.client.xadd(evil, {b"k": evil, evil: b""}, id="1-0")
    (line,) = penstock.lines("tail", evil.decode("utf-8", "surrogateescape"), "--no-follow", *form)
    assert line.isprintable()
    assert "[red]x[/]" in line
    assert "{id}" in line


def test_order_and_repetition_of_fields_are_kept(penstock: CommandLine) -> None:
    penstock.lines("add", "s", "b=1", "a=2", "b=3", "--id", "1-0")
    (line,) = penstock.lines("tail", "s", "--no-follow", "--format", "{fields} {json}")
    assert line == 'b=1 a=2 b=3 {"b":"1","a":"2","b":"3"}'


def test_a_large_value_is_not_cut(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": "x" * (1 << 20)})
    (line,) = penstock.lines("tail", "s", "--no-follow")
    assert line.endswith("x" * (1 << 20))


def test_a_missing_stream_is_an_error_only_without_follow(penstock: CommandLine) -> None:
    assert penstock.error("tail", "s", "--no-follow") == (1, "s: no such stream")
    result = penstock.run("tail", "s", "--until", "@5")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "penstock: s: does not exist yet; waiting for it\n"


def test_a_key_of_another_type_is_refused(penstock: CommandLine) -> None:
    penstock.server.client.set("text", "x")
    assert penstock.error("tail", "text") == (1, "text: holds a string, not a stream")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["s", "--from", "yesterday"],
        ["s", "--until", "5 minutes"],
        ["s", "--from", ""],
        ["s", "-n", "0"],
        ["s", "--where", "sku"],
        ["s", "--where", "sku~("],
        ["s", "--format", "{nope}"],
        ["s", "--json", "--format", "{id}"],
        ["s", "--no-ack"],
        ["s", "--create-group"],
        ["s", "--consumer", "c"],
        ["s", "--retry", "-1"],
        ["s", "--follow-me"],
    ],
)
def test_a_wrong_command_line_is_refused(penstock: CommandLine, words: list[str]) -> None:
    code, line = penstock.error("tail", *words)
    assert code == 2
    assert line.endswith("see penstock tail --help")


def test_nothing_is_before_the_start(penstock: CommandLine) -> None:
    fill(penstock, "s", "1-0")
    code, _ = penstock.error("tail", "s", "--until", "start")
    assert code == 1
