"""Replies of a server that may be broken or hostile: parsers for redis-py that limit everything.

redis-py's own parser believes what a server announces. An array inside of an array is a call inside of a
call, so some hundred of them end in a RecursionError; a length that is no number is a ValueError; a line
without an end and a string of a terabyte are collected until memory ends. With the parsers here each of these
is an InvalidResponse, which redis-py answers by closing the connection:

    depth       arrays inside of arrays; the deepest reply that we ask for has six
    elements    of all arrays of a reply, checked when they are announced
    bytes       of a reply, and of one string, checked before they are received
    line        a status, an error, a number or a length

`ReplyBuilder` does all of it without a socket. It keeps the arrays that are not complete on a stack of its
own, so depth costs no calls. The two parsers feed it lines and strings from a socket and from asyncio.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import redis
from redis._parsers import _AsyncRESP2Parser, _RESP2Parser
from redis._parsers.socket import SocketBuffer

from penstock.errors import PenstockError

T = TypeVar("T")

DEPTH_MAX = 32
ELEMENTS_MAX = 16 << 20
STRING_BYTES_MAX = 512 << 20  # Redis's own limit
REPLY_BYTES_MAX = 1 << 30
LINE_BYTES_MAX = 64 << 10  # asyncio's limit of a line, too
NO_STRING = -1

_SHOWN_BYTES = 40
_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
_INT64_MAX = (1 << 63) - 1


class ReplyBuilder:
    """One reply out of its lines and strings; `is_done`, then `result`.

    `parse_error` makes an exception of what an error line says. Raises: redis.InvalidResponse.
    """

    def __init__(self, parse_error: Callable[[str], Exception]) -> None:
        self.is_done = False
        self.result: Any = None
        self._parse_error = parse_error
        self._open: list[
            tuple[list[Any], int]
        ] = []  # arrays that are not complete, and their sizes
        self._elements = 0
        self._bytes = 0

    def line(self, raw: bytes) -> int:
        """Take a line without its end; the size of the string that must follow, or NO_STRING."""
        self._charge(len(raw) + 2)
        kind, rest = raw[:1], raw[1:]
        if kind == b"$":
            return self._string(_number(raw))
        if kind == b"*":
            self._array(_number(raw))
        elif kind == b":":
            self.add(_number(raw))
        elif kind == b"+":
            self.add(rest)
        elif kind == b"-":
            self.add(self._error(rest))
        else:
            raise _invalid("a reply cannot begin like this", raw)
        return NO_STRING

    def add(self, value: Any) -> None:
        """Take a value that is complete, and with it perhaps the arrays around it."""
        while self._open:
            items, size = self._open[-1]
            items.append(value)
            if len(items) < size:
                return
            self._open.pop()
            value = items
        self.result = value
        self.is_done = True

    def _string(self, size: int) -> int:
        if size == -1:
            self.add(None)
            return NO_STRING
        if size < 0 or size > STRING_BYTES_MAX:
            raise redis.InvalidResponse(f"the server announces a string of {size} bytes")
        self._charge(size + 2)
        return size

    def _array(self, size: int) -> None:
        if size == -1:
            self.add(None)
            return
        self._elements += max(size, 0)
        if size < 0 or self._elements > ELEMENTS_MAX:
            raise redis.InvalidResponse(f"the server announces an array of {size} elements")
        if size == 0:
            self.add([])
            return
        if len(self._open) == DEPTH_MAX:
            raise redis.InvalidResponse(f"the server nests arrays more than {DEPTH_MAX} deep")
        self._open.append(([], size))

    def _error(self, rest: bytes) -> Exception:
        text = rest.decode("utf-8", "replace")
        try:
            error = self._parse_error(text)
        except (ValueError, LookupError, TypeError):  # MOVED without a slot, for example
            return redis.ResponseError(text)
        if isinstance(error, redis.ConnectionError):
            raise error
        return error

    def _charge(self, size: int) -> None:
        self._bytes += size
        if self._bytes > REPLY_BYTES_MAX:
            raise redis.InvalidResponse(
                f"the server's reply is longer than {REPLY_BYTES_MAX} bytes"
            )


class BoundedParser(_RESP2Parser):
    """For connections of redis.Redis: `parser_class=BoundedParser, protocol=2, decode_responses=False`."""

    def on_connect(self, connection: Any) -> None:
        super().on_connect(connection)  # type: ignore[no-untyped-call]
        self._buffer: Any = _BoundedBuffer(
            connection._sock, self.socket_read_size, connection.socket_timeout
        )

    # `options` is a timeout, which older versions of redis-py do not pass.
    def _read_response(self, disable_decoding: bool = False, **options: Any) -> Any:  # type: ignore[override]
        builder = ReplyBuilder(self.parse_error)
        while not builder.is_done:
            size = builder.line(self._buffer.readline(**options))
            if size != NO_STRING:
                builder.add(self._buffer.read(size, **options))
        return builder.result


class BoundedAsyncParser(_AsyncRESP2Parser):
    """The same for redis.asyncio.Redis."""

    async def _read_response(self, disable_decoding: bool = False) -> Any:
        builder = ReplyBuilder(self.parse_error)
        while not builder.is_done:
            size = builder.line(await self._line())
            if size != NO_STRING:
                builder.add(await self._read(size))
        return builder.result

    async def _line(self) -> bytes:
        try:
            return await self._readline()
        except ValueError:  # asyncio's word for a line above its limit
            raise redis.InvalidResponse("the server sends a line without an end") from None


class _BoundedBuffer(SocketBuffer):
    """What was received. redis-py's own collects a line for as long as bytes come."""

    def readline(self, **options: Any) -> bytes:  # type: ignore[override]
        line: bytes = self._buffer.readline()
        while not line.endswith(b"\r\n"):
            if len(line) > LINE_BYTES_MAX or line.endswith(b"\n"):
                raise redis.InvalidResponse("the server sends a line without an end")
            self._read_from_socket(**options)
            line += self._buffer.readline()
        return line[:-2]


def understood(act: Callable[[], T]) -> T:
    """The result. What redis-py raises on a reply that it does not understand becomes an InvalidResponse.

    That is for parsers of redis-py's own, which a cluster's client uses for some of its questions.
    """
    try:
        return act()
    except (redis.RedisError, PenstockError, OSError, UnicodeError):
        raise
    except Exception as error:
        raise _not_understood(error) from error


async def understood_later(act: Awaitable[T]) -> T:
    """The same for asyncio."""
    try:
        return await act
    except (redis.RedisError, PenstockError, OSError, UnicodeError):
        raise
    except Exception as error:
        raise _not_understood(error) from error


def _not_understood(error: Exception) -> redis.InvalidResponse:
    return redis.InvalidResponse(f"its answer cannot be read ({type(error).__name__})")


def _number(raw: bytes) -> int:
    """The integer behind the first byte of a line."""
    if not _NUMBER.fullmatch(raw, 1):
        raise _invalid("a number is expected", raw)
    number = int(raw[1:])
    if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
        raise _invalid("a number of 64 bits is expected", raw)
    return number


def _invalid(what: str, raw: bytes) -> redis.InvalidResponse:
    return redis.InvalidResponse(f"{what}: {raw[:_SHOWN_BYTES]!r}")
