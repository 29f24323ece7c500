"""Parsers for redis-py that limit the size of replies, for servers that may be broken or hostile.

redis-py's parser trusts the server. Nested arrays are parsed by recursion, so some hundred levels raise
RecursionError. A length that is not a number raises ValueError. A line without an end, or a string of a
terabyte, is collected until memory runs out. The parsers here raise InvalidResponse in all these cases, and
redis-py then closes the connection. The limits:

    depth       nested arrays; the deepest reply the code asks for has six levels
    elements    of all arrays of a reply, checked when they are announced
    bytes       of a reply and of one string, checked before they are received
    line        a status, an error, a number or a length

`ReplyBuilder` works without a socket. It keeps incomplete arrays on a stack, so nesting needs no recursion.
The two parsers feed it with lines and strings, from a socket and from asyncio.
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
LINE_BYTES_MAX = 64 << 10  # also asyncio's limit
NO_STRING = -1

_ENDLESS_LINE = "the server sent a line without an end"
_SHOWN_BYTES = 40
_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
_INT64_MAX = (1 << 63) - 1


class ReplyBuilder:
    """Builds one reply from lines and strings. `result` is valid once `is_done`.

    `parse_error` turns the text of an error into an exception. Raises: redis.InvalidResponse.
    """

    def __init__(self, parse_error: Callable[[str], Exception]) -> None:
        self.is_done = False
        self.result: Any = None
        self._parse_error = parse_error
        self._open: list[tuple[list[Any], int]] = []  # incomplete arrays and their sizes
        self._elements = 0
        self._bytes = 0

    def line(self, raw: bytes) -> int:
        """Add a line without CRLF. Returns the size of the string that must follow, or NO_STRING."""
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
        """Add a complete value. This may complete the arrays around it."""
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
            raise redis.InvalidResponse(f"the server announced a string of {size} bytes")
        self._charge(size + 2)
        return size

    def _array(self, size: int) -> None:
        if size == -1:
            self.add(None)
            return
        self._elements += max(size, 0)
        if size < 0 or self._elements > ELEMENTS_MAX:
            raise redis.InvalidResponse(f"the server announced an array of {size} elements")
        if size == 0:
            self.add([])
            return
        if len(self._open) == DEPTH_MAX:
            raise redis.InvalidResponse(f"the server nested arrays more than {DEPTH_MAX} deep")
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
    """For redis.Redis, with `parser_class=BoundedParser, protocol=2, decode_responses=False`."""

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
    """As BoundedParser, for redis.asyncio.Redis."""

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
        except ValueError:  # asyncio raises it for a line above its limit
            raise redis.InvalidResponse(_ENDLESS_LINE) from None


class _BoundedBuffer(SocketBuffer):
    """A receive buffer that limits lines. redis-py's buffer does not."""

    def readline(self, **options: Any) -> bytes:  # type: ignore[override]
        line: bytes = self._buffer.readline()
        while not line.endswith(b"\r\n"):
            if len(line) > LINE_BYTES_MAX or line.endswith(b"\n"):
                raise redis.InvalidResponse(_ENDLESS_LINE)
            self._read_from_socket(**options)
            line += self._buffer.readline()
        return line[:-2]


def understood(act: Callable[[], T]) -> T:
    """Call `act`. Exceptions from replies that redis-py cannot parse become InvalidResponse.

    Clients of a cluster need this: they use redis-py's own parsers for some commands.
    """
    try:
        return act()
    except (redis.RedisError, PenstockError, OSError, UnicodeError):
        raise
    except Exception as error:
        raise _not_understood(error) from error


async def understood_later(act: Awaitable[T]) -> T:
    """As `understood`, for asyncio."""
    try:
        return await act
    except (redis.RedisError, PenstockError, OSError, UnicodeError):
        raise
    except Exception as error:
        raise _not_understood(error) from error


def _not_understood(error: Exception) -> redis.InvalidResponse:
    return redis.InvalidResponse(f"its reply cannot be parsed ({type(error).__name__})")


def _number(raw: bytes) -> int:
    """The integer after the first byte of a line."""
    if not _NUMBER.fullmatch(raw, 1):
        raise _invalid("a number is expected", raw)
    number = int(raw[1:])
    if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
        raise _invalid("a number of 64 bits is expected", raw)
    return number


def _invalid(what: str, raw: bytes) -> redis.InvalidResponse:
    return redis.InvalidResponse(f"{what}: {raw[:_SHOWN_BYTES]!r}")
