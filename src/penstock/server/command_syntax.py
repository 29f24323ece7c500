"""Parses a row's syntax line into the arguments of COMMAND DOCS.

    key [NX|XX] [EX seconds|PX milliseconds] id [id ...]

    key                         key
    [NX|XX]                     oneof, optional: NX, XX
    [EX seconds|PX ...]         oneof, optional: seconds (token EX), milliseconds (token PX)
    id [id ...]                 id, multiple

Rules
  - A word without lower-case letters is a token. Before a name it belongs to that name; otherwise it is an
    argument of its own, a pure token.
  - Inside brackets | separates whole alternatives (EX seconds|PX milliseconds), unless only the first has a
    token (TYPE string|list): then the token belongs to all of them. The same applies outside brackets, where
    | joins two neighbours.
  - [x ...] after an x means that x may be repeated, and so does [...]. Elsewhere [x ...] is an optional
    argument that may be repeated.

The syntax lines are penstock's own, so the only error is an unbalanced bracket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

KEY_NAMES = {"key", "newkey", "source", "destination"}
INTEGER_NAMES = {
    "client-id",
    "count",
    "cursor",
    "db",
    "decrement",
    "destination-db",
    "entries-added",
    "entries-read",
    "increment",
    "index",
    "index1",
    "index2",
    "len",
    "len-limit",
    "maxlen",
    "milliseconds",
    "min-idle-time",
    "ms",
    "num-matches",
    "numkeys",
    "numreplicas",
    "offset",
    "parts",
    "port",
    "rank",
    "seconds",
    "timeout",
}
_SYMBOL_NAMES = {"*": "auto-id", "$": "new-id", "=": "equal", "~": "approximately"}

_WORD = re.compile(r"\.\.\.|[][<>|]|[^][<>|\s]+")
_CLOSING = {"[": "]", "<": ">"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `arguments`: the parts of a block, or the choices of a oneof."""

    name: str
    type: str
    token: str | None = None
    optional: bool = False
    multiple: bool = False
    arguments: tuple[Argument, ...] = ()


@cache
def arguments_of(syntax: str) -> tuple[Argument, ...]:
    """The arguments of a syntax line. Raises: ValueError for unbalanced brackets."""
    words = _WORD.findall(syntax)
    if words.count("[") != words.count("]") or words.count("<") != words.count(">"):
        raise ValueError(f"unbalanced brackets: {syntax}")
    reader = _Reader(words)
    found = reader.sequence(outside=True)
    if reader.at != len(words):
        raise ValueError(f"unbalanced brackets: {syntax}")
    return tuple(found)


def _is_token(word: str) -> bool:
    return word == word.upper() and word not in ("[", "]", "<", ">", "|", "...")


def _single(word: str) -> Argument:
    if _is_token(word):
        return Argument(_SYMBOL_NAMES.get(word, word.lower()), "pure-token", word)
    if word in KEY_NAMES:
        return Argument(word, "key")
    if word in INTEGER_NAMES:
        return Argument(word, "integer")
    if word == "pattern":
        return Argument(word, "pattern")
    return Argument(word, "unix-time" if word.startswith("unix-time") else "string")


def _joined(arguments: list[Argument]) -> Argument:
    """One argument made of several consecutive ones."""
    if len(arguments) == 1:
        return arguments[0]
    name = "-".join(argument.name for argument in arguments[:3])
    return Argument(name, "block", arguments=tuple(arguments))


def _one_of(choices: list[Argument]) -> Argument:
    if len(choices) == 1:
        return choices[0]
    name = "-or-".join(choice.name for choice in choices[:3])
    return Argument(name, "oneof", arguments=tuple(choices))


class _Reader:
    """A recursive-descent parser for syntax lines."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.at = 0

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def sequence(self, outside: bool) -> list[Argument]:
        """Arguments up to the end, a closing bracket, or a | inside brackets."""
        found: list[Argument] = []
        while self._next() not in ("", "]", ">"):
            word = self._next()
            if self.words[self.at : self.at + 3] == ["[", "...", "]"]:
                self.at += 3
                found[-1] = replace(found[-1], multiple=True)
            elif word == "[":
                self._optional(found)
            elif word == "...":
                self.at += 1
                found[-1] = replace(found[-1], multiple=True)
            elif word == "|":
                if not outside:
                    break
                found.append(self._neighbours(found.pop()))
            else:
                found.append(self._one())
        return found

    def _neighbours(self, left: Argument) -> Argument:
        """The alternatives around a | outside brackets."""
        self.at += 1
        word = self._next()
        if word == "<":
            right = _one_of(self._alternatives())
        else:
            self.at += 1
            right = _single(word)
        token = None if left.type == "pure-token" else left.token
        first = left if token is None else replace(left, token=None)
        choices = left.arguments if left.type == "oneof" else (first,)
        return replace(_one_of([*choices, right]), token=token)

    def _one(self) -> Argument:
        """A word, a token with its word, or a group in angle brackets."""
        word = self._next()
        if word == "<":
            return _one_of(self._alternatives())
        self.at += 1
        argument = _single(word)
        following = self._next()
        if argument.type != "pure-token" or following in ("", "[", "]", ">", "|", "..."):
            return argument
        if following == "<":
            return replace(_one_of(self._alternatives()), token=word)
        if _is_token(following):
            return argument
        self.at += 1
        return replace(_single(following), token=word)

    def _alternatives(self) -> list[Argument]:
        """The contents of brackets, starting at the bracket: one argument per alternative."""
        closing = _CLOSING[self._next()]
        choices: list[Argument] = []
        while True:
            self.at += 1
            choices.append(_joined(self.sequence(outside=False)))
            if self._next() != "|":
                break
        if self._next() != closing:
            raise ValueError(f"unbalanced brackets: {' '.join(self.words)}")
        self.at += 1
        first, rest = choices[0], choices[1:]
        if (
            rest
            and first.token is not None
            and first.type != "pure-token"
            and not first.optional
            and all(choice.token is None and not choice.arguments for choice in rest)
        ):
            shared = _one_of([replace(first, token=None), *rest])
            return [replace(shared, token=first.token)]
        return choices

    def _optional(self, found: list[Argument]) -> None:
        """Square brackets: an optional argument, or the repetition of the argument before."""
        choice = _one_of(self._alternatives())
        inner = _unmarked(choice)
        if inner is not None:
            names = [argument.name for argument in inner]
            before = found[len(found) - len(inner) :] if len(found) >= len(inner) else []
            if [argument.name for argument in before] == names:
                del found[len(found) - len(inner) :]
                found.append(replace(_joined(before), multiple=True))
                return
            if len(inner) > 1:
                inner[-1] = replace(inner[-1], multiple=False)
                choice = replace(_joined(inner), multiple=True)
        found.append(replace(choice, optional=True))


def _unmarked(choice: Argument) -> list[Argument] | None:
    """The arguments of a group that ends in `...`; None for other groups."""
    if choice.type == "block" and choice.token is None:
        last = choice.arguments[-1]
        return list(choice.arguments) if last.multiple else None
    return [choice] if choice.multiple else None
