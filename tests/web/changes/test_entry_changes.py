"""Changes of entries: planned by reading, shown in full, refused in read-only mode."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.web.changes import entry_changes
from penstock.web.changes.entry_changes import (
    Change,
    carry_out,
    plan_add,
    plan_delete,
    plan_trim_before,
    plan_trim_to_length,
)
from penstock.web.http.sessions import Role, Session
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from tests.web.changes.planned import planned
from tests.web.conftest import Live


def test_a_plan_changes_nothing_and_a_read_only_dashboard_refuses_it(
    stream_of_ten: Live,
) -> None:
    async def run(server: ServerClient) -> None:
        facts = await one_stream(server, b"s")
        change = await plan_trim_before(server, facts, StreamID(5, 0))
        with pytest.raises(Refused, match="--allow-writes"):
            await carry_out(server, Session(Role.OPERATOR), change)

    stream_of_ten.ask(run)
    assert stream_of_ten.client.xlen("s") == 10


def test_a_trim_shows_what_is_deleted_and_who_has_not_read_it(stream_of_ten: Live) -> None:
    change = planned(
        stream_of_ten, lambda server, facts: plan_trim_before(server, facts, StreamID(7, 0))
    )
    assert change.command_lines == ["XTRIM s MINID = 7-0"]
    assert change.effects[0].startswith("deletes 6 of 10 entries, about ")
    assert "for example 1-0 " in change.effects[1]
    assert "group g has read up to 4-0" in change.warnings[0]
    assert stream_of_ten.client.xlen("s") == 4


@pytest.mark.parametrize("kept", [1, 3, 9])
def test_a_trim_to_a_length_names_the_id_that_stays(stream_of_ten: Live, kept: int) -> None:
    change = planned(stream_of_ten, lambda server, facts: plan_trim_to_length(server, facts, kept))
    assert change.command_lines == [f"XTRIM s MINID = {11 - kept}-0"]
    assert stream_of_ten.client.xlen("s") == kept


def test_a_trim_to_a_length_counts_from_the_nearer_end(
    stream_of_ten: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_changes, "COUNTED_MAX", 3)
    monkeypatch.setattr(entry_changes, "COUNT_CHUNK", 2)
    assert (
        "8-0"
        in planned(stream_of_ten, lambda s, f: plan_trim_to_length(s, f, 3), False).command_lines[0]
    )
    assert (
        "3-0"
        in planned(stream_of_ten, lambda s, f: plan_trim_to_length(s, f, 8), False).command_lines[0]
    )
    with pytest.raises(Refused, match="from both ends"):
        planned(stream_of_ten, lambda s, f: plan_trim_to_length(s, f, 5), False)


def test_a_trim_without_effect_has_no_command(stream_of_ten: Live) -> None:
    change = planned(stream_of_ten, lambda server, facts: plan_trim_before(server, facts, SMALLEST))
    assert change.effects == ("nothing to do: no entry is before 0-0",)
    assert change.commands == ()
    change = planned(stream_of_ten, lambda server, facts: plan_trim_to_length(server, facts, 99))
    assert (change.effects, change.commands) == (
        ("nothing to do: the stream has only 10 entries",),
        (),
    )
    assert stream_of_ten.client.xlen("s") == 10


def test_a_trim_to_length_0_empties_the_stream(stream_of_ten: Live) -> None:
    planned(stream_of_ten, lambda server, facts: plan_trim_to_length(server, facts, 0))
    assert stream_of_ten.client.xlen("s") == 0


def test_a_trim_keeps_entries_added_after_the_plan(stream_of_ten: Live) -> None:
    async def run(server: ServerClient) -> None:
        facts = await one_stream(server, b"s")
        of_all = await plan_trim_before(server, facts, StreamID(10**6, 0))
        of_none = await plan_trim_to_length(server, facts, 10)
        stream_of_ten.client.xadd("s", {"n": "new"}, id="11-0")
        await carry_out(server, Session(Role.OPERATOR), of_none)
        assert stream_of_ten.client.xlen("s") == 11
        await carry_out(server, Session(Role.OPERATOR), of_all)

    stream_of_ten.ask(run, allow_writes=True)
    assert [id_ for id_, _ in stream_of_ten.client.xrange("s")] == [b"11-0"]


@pytest.mark.parametrize(("start", "emptied"), [(3, "2"), (5, "4"), (9, "4")])
def test_a_trim_warns_about_pending_entries_that_lose_their_fields(
    stream_of_ten: Live, start: int, emptied: str
) -> None:
    change = planned(
        stream_of_ten, lambda s, f: plan_trim_before(s, f, StreamID(start, 0)), do_it=False
    )
    assert f"group g has {emptied} pending entries before {start}-0" in change.warnings[-1]


def test_a_trim_counts_a_bounded_number_of_pending_entries(
    stream_of_ten: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_changes, "PENDING_COUNTED_MAX", 3)
    change = planned(stream_of_ten, lambda s, f: plan_trim_to_length(s, f, 0), do_it=False)
    assert "group g has over 3 pending" in change.warnings[-1]


def test_a_trim_up_to_the_largest_id_is_refused(live: Live) -> None:
    for id_ in ("1-0", "2-0", str(LARGEST)):
        live.client.xadd("s", {"n": "0"}, id=id_)
    with pytest.raises(Refused, match="no trim can include it"):
        planned(live, lambda server, facts: plan_trim_to_length(server, facts, 0))
    planned(live, lambda server, facts: plan_trim_to_length(server, facts, 1))
    assert [id_ for id_, _ in live.client.xrange("s")] == [LARGEST.text]


def test_entries_are_added_and_deleted(live: Live) -> None:
    live.client.xadd("s", {"n": "0"}, id="1-0")

    async def add(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_add(facts.name, [(b"a", b"x y"), (b"a", b"\xff")], "2-0")

    assert planned(live, add).command_lines == ['XADD s 2-0 a "x y" a "\\xff"']

    async def delete(server: ServerClient, facts: StreamFacts) -> Change:
        return plan_delete(facts.name, [StreamID(1, 0)], facts.groups)

    planned(live, delete)
    assert [id_ for id_, _ in live.client.xrange("s")] == [b"2-0"]


@pytest.mark.parametrize("id_", ["*", "7-*", "7", "7-1", "18446744073709551615-*"])
def test_an_entry_is_added_at_an_id(id_: str) -> None:
    assert plan_add(b"s", [(b"a", b"b")], id_).command_lines == [f"XADD s {id_} a b"]


@pytest.mark.parametrize(
    "id_",
    ["NOMKSTREAM", "maxlen", "-", "+", "$", "1-", "1-2-3", "*-1", "-1-0", "1 2", f"{2**64}-0"],
)
def test_an_invalid_id_is_never_sent(id_: str) -> None:
    with pytest.raises(Refused, match="is not an id"):
        plan_add(b"s", [(b"a", b"b")], id_)


def test_changes_without_a_selection_are_refused() -> None:
    with pytest.raises(Refused, match="needs at least one field"):
        plan_add(b"s", [])
    with pytest.raises(Refused, match="no entry is selected"):
        plan_delete(b"s", [], [])


def test_a_partial_change_reports_how_many_commands_succeeded(live: Live) -> None:
    live.client.set("word", "x")

    async def half(server: ServerClient, facts: StreamFacts) -> Change:
        commands = (("XADD", "s", "*", "a", "1"), ("XADD", "word", "*", "a", "1"))
        return Change("Add", commands, ())

    live.client.xadd("s", {"n": "0"})
    with pytest.raises(Refused, match="1 of 2 commands succeeded, then: WRONGTYPE"):
        planned(live, half)
    assert live.client.xlen("s") == 2


@given(st.lists(st.binary(max_size=20) | st.text(max_size=10).map(str.encode), max_size=4))
def test_the_command_shown_is_the_command_sent(words: list[bytes]) -> None:
    (line,) = Change("", (("XADD", *words),), ()).command_lines
    assert "\n" not in line
    assert redis_cli_words(line) == [b"XADD", *words]


def redis_cli_words(line: str) -> list[bytes]:
    """Split a line by the rules of redis-cli, as far as they are used here."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^ "]+)', line)
    return [
        re.sub(
            rb"\\(?:x([0-9a-f]{2})|(.))",
            lambda part: bytes.fromhex(part[1].decode()) if part[1] else part[2],
            inside.encode(),
        )
        if not plain
        else plain.encode()
        for inside, plain in found
    ]
