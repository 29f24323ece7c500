"""The positions of keys in stream commands, found without running them."""

from __future__ import annotations

import pytest

from penstock.errors import CommandError
from tests.support.engine.engines import command_of
from tests.support.engine.streams import frame_of


def keys_of(line: str) -> list[str]:
    command, words = command_of(line.split())
    return [words[place].decode() for place in command.key_places(frame_of(*words))]


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("XADD s * k v", ["s"]),
        ("XGROUP CREATE s g 0", ["s"]),
        ("XGROUP HELP", []),
        ("XINFO STREAM s", ["s"]),
        ("PENSTOCK NODES s - +", ["s"]),
        ("PENSTOCK APPENDBATCH 1 4 r s p q MAXLEN 5", ["r", "s", "p", "q"]),
        ("XREAD STREAMS s 0", ["s"]),
        ("xread count 1 block 5 streams s t 0 0", ["s", "t"]),
        ("XREAD BLOCK STREAMS COUNT STREAMS STREAMS s 0", ["s"]),
        ("XREADGROUP GROUP g a STREAMS s t > >", ["s", "t"]),
        ("XREADGROUP NOACK COUNT 5 GROUP STREAMS STREAMS STREAMS s >", ["s"]),
        ("XREADGROUP GROUP g STREAMS COUNT 1 STREAMS s >", ["s"]),
        ("XREADGROUP CLAIM 5 MAXCOUNT 5 GROUP g STREAMS STREAMS s >", ["s"]),
        ("XREADGROUP CLAIM STREAMS MAXSIZE STREAMS GROUP g a STREAMS s t > >", ["s", "t"]),
        # Numbers are checked when the command runs.
        ("XREAD COUNT many BLOCK -1 STREAMS s oops", ["s"]),
    ],
)
def test_keys_are_found(line: str, keys: list[str]) -> None:
    assert keys_of(line) == keys


@pytest.mark.parametrize(
    "line",
    [
        "XREAD STREAMS s t 0",
        "XREAD COUNT 1 s 0",
        "XREAD BLOCK 1 STREAMS",
        "XREADGROUP COUNT 1 BLOCK 1 STREAMS s >",
        "XREAD GROUP g a STREAMS s 0",
    ],
)
def test_invalid_arguments_have_no_keys(line: str) -> None:
    with pytest.raises(CommandError):
        keys_of(line)
