"""Reply values that plain Python values cannot express.

A command returns None, int, bytes, a list of these, or one of the classes below. The client's protocol
decides how they are encoded; `embedded/results.py` converts them to redis-py's results.

A command with a quick form (engine/table.py) may instead write its reply at once, through a `ReplyWriter`.
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
    """Names (usually bytes) and values in order: a map in RESP3, a flat array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[Any, Any]]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Pairs({self.items!r})"


class Push:
    """A message that is not a reply: a push in RESP3, an array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Push({self.items!r})"


class Verbatim:
    """Text for people: marked as such in RESP3, a plain string in RESP2."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Verbatim({self.text!r})"


class Double:
    """A floating-point number: a type of its own in RESP3, a string in RESP2."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Double({self.value!r})"


class Members:
    """Unordered values: a set in RESP3, an array in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Members({self.items!r})"


class NullArray:
    """The null that RESP2 writes as an array of length -1; RESP3 has only one null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NULL_ARRAY"


class NoReply:
    """No reply is sent, or the command has already written its replies."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_REPLY"


OK = Status("OK")
NULL_ARRAY = NullArray()
NO_REPLY = NoReply()


class Served:
    """The result of a read: keys and their entries. A map in RESP3, an array of pairs in RESP2."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[bytes, Any]]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Served({self.items!r})"


class ReplyWriter:
    """Writes one reply to a client, in the client's protocol; implemented by wire/encoder.py."""

    __slots__ = ()

    def put(self, reply: Any) -> None:
        """Write a reply of any kind."""
        raise NotImplementedError

    def put_raw(self, data: bytes) -> None:
        """Write bytes that are the same in both protocols and already encoded."""
        raise NotImplementedError

    def put_bulk(self, data: bytes) -> None:
        """Write a string."""
        raise NotImplementedError

    def put_int(self, number: int) -> None:
        """Write a number."""
        raise NotImplementedError

    def put_id(self, ms_text: bytes, seq: int) -> None:
        """Write a stream id: `ms-` as text, and its second half."""
        raise NotImplementedError

    def put_served(self, key: bytes, entries: Any) -> None:
        """Write the result of a read from one stream."""
        raise NotImplementedError

    def begin_served(self, key: bytes, expected: int) -> None:
        """Begin the result of a read from one stream; about `expected` entries follow, by put_entry."""
        raise NotImplementedError

    def put_entry(self, entry: Any) -> None:
        """Write the entry at which a NodeCursor (core/stream_node.py) is."""
        raise NotImplementedError

    def end_served(self, count: int) -> None:
        """End what begin_served began, after `count` entries."""
        raise NotImplementedError
