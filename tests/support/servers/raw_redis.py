"""A connection to a server that sends words and returns replies unchanged.

redis-py converts replies to its own types and does not distinguish the two nulls. A comparison with a server
needs the exact reply.

    +OK  ->  "OK"      :5  ->  5      $2 ab  ->  b"ab"      $-1  ->  None      *-1  ->  NULL_ARRAY
    -ERR text  ->  Refusal("ERR text")

RESP3: %  ->  dict      ~  ->  Members      >  ->  Push
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.reply import NULL_ARRAY

REPLY_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error reply, with its code."""

    line: str


class RawRedis:
    """One connection. Use it in a `with` statement."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_SECONDS_MAX)
        self._replies = self.socket.makefile("rb")

    def __enter__(self) -> RawRedis:
        return self

    def __exit__(self, *_: object) -> None:
        self._replies.close()
        self.socket.close()

    def send(self, commands: Sequence[Sequence[bytes]]) -> None:
        """Send commands without reading the replies."""
        self.socket.sendall(b"".join(encode(words) for words in commands))

    def ask(self, commands: Sequence[Sequence[bytes]]) -> list[Any]:
        """Send all commands at once, and read the reply to each."""
        self.send(commands)
        return [self.read() for _ in commands]

    def read(self) -> Any:
        """The next reply."""
        return read_reply(self._replies)

    def rest(self) -> bytes:
        """All bytes until the connection is closed."""
        try:
            return self._replies.read()
        except ConnectionResetError:
            return b""


@dataclass(frozen=True, slots=True)
class Members:
    """A set of RESP3, in the order received."""

    items: list[Any]


@dataclass(frozen=True, slots=True)
class Push:
    """A push message of RESP3, which is not a reply to a command."""

    items: list[Any]


def read_reply(replies: BinaryIO) -> Any:
    """The next reply of either protocol. Raises: EOFError if there is none."""
    line = replies.readline()
    if not line.endswith(b"\r\n"):  # a partial reply of a killed server counts as none
        raise EOFError
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        return Refusal(rest.decode("utf-8", "surrogateescape"))
    if kind == b"+":
        return rest.decode()
    if kind == b"_":
        return None
    if kind == b",":
        return float(rest)
    size = int(rest)
    if kind == b":":
        return size
    if kind == b"$":
        return None if size < 0 else _read_bulk(replies, size)
    if kind == b"=":
        return _read_bulk(replies, size)[4:]
    if kind == b"%":
        return {read_reply(replies): read_reply(replies) for _ in range(size)}
    items = [read_reply(replies) for _ in range(max(0, size))]
    if kind == b"~":
        return Members(items)
    if kind == b">":
        return Push(items)
    assert kind == b"*", line
    return NULL_ARRAY if size < 0 else items


def _read_bulk(replies: BinaryIO, size: int) -> bytes:
    data = replies.read(size + 2)
    if len(data) < size + 2:
        raise EOFError
    return data[:-2]


def encode(words: Sequence[bytes]) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)
