"""Finding the table row of a command."""

from __future__ import annotations

import pytest

from penstock.engine.execute import TABLE
from penstock.engine.lookup import Lookup
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError
from tests.support.engine.streams import frame_of
from tests.support.engine.unknown_commands import UNKNOWN

LOOKUP = Lookup(TABLE.values())


def row(name: str) -> Command:
    return Command(name, lambda context, frame: None, -1, Flags.READ, NO_KEYS, "Nothing.")


@pytest.mark.parametrize("name", TABLE)
def test_every_row_is_found_in_any_mix_of_case(name: str) -> None:
    for given in (name, name.lower(), name.title()):
        assert LOOKUP.find(frame_of(*given.encode().split(b" "), b"more")) is TABLE[name]


@pytest.mark.parametrize(("words", "text"), UNKNOWN, ids=lambda value: repr(value)[:30])
def test_an_unknown_command_is_refused_with_the_text_of_redis(
    words: list[bytes], text: str
) -> None:
    with pytest.raises(CommandError) as refused:
        LOOKUP.find(frame_of(*words))
    assert refused.value.wire_text == f"ERR {text}"


def test_an_unknown_command_without_arguments_may_have_a_short_text() -> None:
    lookup = Lookup(TABLE.values(), alone_is_short=True)
    with pytest.raises(CommandError) as refused:
        lookup.find(frame_of(b"x" * 200))
    assert refused.value.wire_text == f"ERR unknown command '{'x' * 128}'"
    with pytest.raises(CommandError, match="with args beginning with: 'a' "):
        lookup.find(frame_of(b"FOO", b"a"))


def test_bytes_that_are_no_text_come_back_as_they_were() -> None:
    with pytest.raises(CommandError) as refused:
        LOOKUP.find(frame_of(b"\xff\xe9", b"\x80"))
    line = refused.value.wire_text.encode("utf-8", "surrogateescape")
    assert line == b"ERR unknown command '\xff\xe9', with args beginning with: '\x80' "


def test_a_name_with_a_nul_behind_it_is_another_name() -> None:
    """Redis compares up to the NUL but hashes everything: there the result depends on the hash seed."""
    with pytest.raises(CommandError, match="unknown command 'xadd'"):
        LOOKUP.find(frame_of(b"xadd\0", b"s"))
    with pytest.raises(CommandError, match="unknown subcommand 'create'"):
        LOOKUP.find(frame_of(b"XGROUP", b"create\0"))


def test_a_container_may_have_a_meaning_of_its_own() -> None:
    whole, part = row("COMMAND"), row("COMMAND COUNT")
    lookup = Lookup([part, whole])
    assert lookup.find(frame_of(b"command")) is whole
    assert lookup.find(frame_of(b"command", b"count")) is part
    with pytest.raises(CommandError, match=r"unknown subcommand 'x'\. Try COMMAND HELP\."):
        lookup.find(frame_of(b"command", b"x"))


def test_containers_are_known_with_their_rows() -> None:
    found = {name: [row.name for row in rows] for name, rows in LOOKUP.containers.items()}
    assert {"XGROUP", "XINFO", "PENSTOCK"} <= found.keys()
    assert found == {
        name: [full for full in TABLE if full.startswith(f"{name} ")] for name in found
    }
    assert sum(map(len, found.values())) == sum(" " in full for full in TABLE)
