"""The few reply values that plain Python values cannot express.

A command returns None, int, bytes or a list of these; everything else it can say is here. What a client
sees of them depends on its protocol; `embedded/results.py` turns them into what redis-py shows.
"""

from __future__ import annotations

from typing import Any


class Status:
    """A short word of success, such as OK."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Status({self.text!r})"


class Pairs:
    """Names (as a rule bytes) and values in order: a map in RESP3, a flat array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[Any, Any]]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Pairs({self.items!r})"


class Push:
    """A message that answers no command: a kind of its own in RESP3, an array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Push({self.items!r})"


class Verbatim:
    """Text for people: RESP3 says that it is, RESP2 sends it as any string."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Verbatim({self.text!r})"


class Double:
    """A number with a fraction: a type in RESP3, a string in RESP2."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Double({self.value!r})"


class Members:
    """Values without an order: a set in RESP3, an array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Members({self.items!r})"


class NullArray:
    """The null that RESP2 writes as an array of length -1; RESP3 has one null for all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NULL_ARRAY"


class NoReply:
    """Nothing is to be answered, or the command has written its answers itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_REPLY"


OK = Status("OK")
NULL_ARRAY = NullArray()
NO_REPLY = NoReply()


class Served:
    """What a read found: keys and their entries. A map in RESP3, an array of pairs in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[bytes, Any]]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Served({self.items!r})"
