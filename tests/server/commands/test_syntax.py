"""Syntax lines are parsed into the arguments that Redis shows."""

from __future__ import annotations

import pytest

from penstock.server.command_syntax import Argument, arguments_of
from penstock.server.command_table import ROWS


def key() -> Argument:
    return Argument("key", "key")


def token(word: str) -> Argument:
    return Argument(word.lower(), "pure-token", word)


def test_an_empty_line_has_no_arguments() -> None:
    assert arguments_of("") == ()


def test_names_tell_their_types() -> None:
    kinds = {argument.name: argument.type for argument in arguments_of("key count pattern value")}
    assert kinds == {"key": "key", "count": "integer", "pattern": "pattern", "value": "string"}
    assert arguments_of("unix-time-seconds") == (Argument("unix-time-seconds", "unix-time"),)


def test_a_token_belongs_to_the_name_after_it() -> None:
    assert arguments_of("COUNT count") == (Argument("count", "integer", "COUNT"),)
    assert arguments_of("[COUNT count]") == (Argument("count", "integer", "COUNT", optional=True),)


def test_a_token_before_no_name_is_an_argument() -> None:
    assert arguments_of("[FORCE] JUSTID") == (
        Argument("force", "pure-token", "FORCE", optional=True),
        token("JUSTID"),
    )


def test_a_token_before_a_choice_belongs_to_the_choice() -> None:
    choices = (Argument("a", "string"), Argument("b", "string"))
    assert arguments_of("KIND <a | b>") == (Argument("a-or-b", "oneof", "KIND", arguments=choices),)
    assert arguments_of("[KIND a|b]") == (
        Argument("a-or-b", "oneof", "KIND", optional=True, arguments=choices),
    )


def test_alternatives_in_brackets_are_whole() -> None:
    seconds = Argument("seconds", "integer", "EX")
    milliseconds = Argument("milliseconds", "integer", "PX")
    name = "seconds-or-milliseconds-or-keepttl"
    choices = (seconds, milliseconds, token("KEEPTTL"))
    assert arguments_of("[EX seconds|PX milliseconds|KEEPTTL]") == (
        Argument(name, "oneof", optional=True, arguments=choices),
    )


def test_alternatives_outside_of_brackets_are_neighbours() -> None:
    side = Argument("left-or-right", "oneof", arguments=(token("LEFT"), token("RIGHT")))
    assert arguments_of("key LEFT|RIGHT LEFT | RIGHT count") == (
        key(),
        side,
        side,
        Argument("count", "integer"),
    )


def test_a_token_outside_of_brackets_belongs_to_all_neighbours() -> None:
    choices = (Argument("a", "string"), Argument("b", "string"), Argument("c", "string"))
    assert arguments_of("KIND a|b|c key") == (
        Argument("a-or-b-or-c", "oneof", "KIND", arguments=choices),
        key(),
    )


@pytest.mark.parametrize("line", ["id [id ...]", "id [ id ... ]", "id [...]", "id ..."])
def test_a_repeated_argument_is_multiple(line: str) -> None:
    assert arguments_of(line) == (Argument("id", "string", multiple=True),)


def test_something_optional_may_be_repeated() -> None:
    wanted = (Argument("section", "string", optional=True, multiple=True),)
    assert arguments_of("[section [section ...]]") == wanted
    assert arguments_of("[section ...]") == wanted


def test_several_are_repeated_together() -> None:
    pair = (key(), Argument("value", "string"))
    assert arguments_of("key value [key value ...]") == (
        Argument("key-value", "block", multiple=True, arguments=pair),
    )
    assert arguments_of("[key value ...]") == (
        Argument("key-value", "block", optional=True, multiple=True, arguments=pair),
    )


def test_a_token_is_not_repeated_with_its_name() -> None:
    assert arguments_of("STREAMS key [key ...] id [id ...]") == (
        Argument("key", "key", "STREAMS", multiple=True),
        Argument("id", "string", multiple=True),
    )


def test_brackets_nest() -> None:
    [trim] = arguments_of("[<MAXLEN | MINID> [= | ~] threshold [LIMIT count]]")
    assert trim.type == "block"
    assert trim.optional
    strategy, operator, threshold, limit = trim.arguments
    assert strategy == Argument(
        "maxlen-or-minid", "oneof", arguments=(token("MAXLEN"), token("MINID"))
    )
    assert [choice.token for choice in operator.arguments] == ["=", "~"]
    assert threshold == Argument("threshold", "string")
    assert limit == Argument("count", "integer", "LIMIT", optional=True)


@pytest.mark.parametrize("line", ["[a", "a]", "<a", "[a>", "<a]", "]a["])
def test_an_unbalanced_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        arguments_of(line)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_syntax_of_every_command_can_be_parsed(row: object) -> None:
    syntax = getattr(row, "syntax", None)
    assert isinstance(syntax, str)
    arguments_of(syntax)
