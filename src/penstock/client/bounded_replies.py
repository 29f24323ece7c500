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
One parser feeds it with all bytes that a socket has received, the other with lines and strings, from asyncio.
It is compiled: a worker reads thousands of entries a second.
"""

from __future__ import annotations

import os
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
_NO_STRING = NO_STRING
_DIGITS_MAX = 18  # of a number that fits 64 bits in any case
_CR, _DOLLAR, _STAR, _PLUS, _MINUS, _COLON = 13, 36, 42, 43, 45, 58

_ENDLESS_LINE = "the server sent a line without an end"
_SHOWN_BYTES = 40
_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
_INT64_MAX = (1 << 63) - 1


class ReplyBuilder:
    """Builds one reply from bytes, or from lines and strings. `result` is valid once `is_done`.

    `parse_error` turns the text of an error into an exception. Raises: redis.InvalidResponse.
    """

    __slots__ = (
        "_bytes",
        "_elements",
        "_open",
        "_parse_error",
        "_size",
        "is_done",
        "result",
        "wanted",
    )

    def __init__(self, parse_error: Callable[[str], Exception]) -> None:
        self.is_done = False
        self.result: Any = None
        self.wanted = 1  # how many more bytes `feed` needs at least
        self._parse_error = parse_error
        self._open: list[tuple[list[Any], int]] = []  # incomplete arrays and their sizes
        self._elements = 0
        self._bytes = 0
        self._size = _NO_STRING  # of the string that must follow

    def feed(self, data: bytes) -> int:
        """Add what is complete at the beginning of these bytes; return how many that are."""
        at = 0
        end = len(data)
        while not self.is_done:
            size = self._size
            if size != _NO_STRING:
                if end - at < size + 2:
                    self.wanted = size + 2 - (end - at)
                    break
                self._size = _NO_STRING
                self.add(data[at : at + size])
                at += size + 2
                continue
            behind = data.find(b"\n", at) + 1
            if behind == 0:
                if end - at > LINE_BYTES_MAX:
                    raise redis.InvalidResponse(_ENDLESS_LINE)
                self.wanted = 1
                break
            if behind - at < 2 or data[behind - 2] != _CR:
                raise redis.InvalidResponse(_ENDLESS_LINE)
            self._size = self.line(data[at : behind - 2])
            at = behind
        return at

    def line(self, raw: bytes) -> int:
        """Add a line without CRLF. Returns the size of the string that must follow, or NO_STRING."""
        self._charge(len(raw) + 2)
        kind = raw[0] if raw else 0
        if kind == _DOLLAR:
            return self._string(_number(raw))
        if kind == _STAR:
            self._array(_number(raw))
        elif kind == _COLON:
            self.add(_number(raw))
        elif kind == _PLUS:
            self.add(raw[1:])
        elif kind == _MINUS:
            self.add(self._error(raw[1:]))
        else:
            raise _invalid("a reply cannot begin like this", raw)
        return _NO_STRING

    def add(self, value: Any) -> int:
        """Add a complete value. This may complete the arrays around it. Returns 0."""
        while self._open:
            items, size = self._open[-1]
            items.append(value)
            if len(items) < size:
                return 0
            self._open.pop()
            value = items
        self.result = value
        self.is_done = True
        return 0

    def _string(self, size: int) -> int:
        if size == -1:
            self.add(None)
            return _NO_STRING
        if size < 0 or size > STRING_BYTES_MAX:
            raise redis.InvalidResponse(f"the server announced a string of {size} bytes")
        self._charge(size + 2)
        return size

    def _array(self, size: int) -> int:
        if size == -1:
            return self.add(None)
        if size < 0 or size > ELEMENTS_MAX - self._elements:
            raise redis.InvalidResponse(f"the server announced an array of {size} elements")
        self._elements += size
        if size == 0:
            return self.add([])
        if len(self._open) == DEPTH_MAX:
            raise redis.InvalidResponse(f"the server nested arrays more than {DEPTH_MAX} deep")
        self._open.append(([], size))
        return 0

    def _error(self, rest: bytes) -> Exception:
        text = rest.decode("utf-8", "replace")
        try:
            error = self._parse_error(text)
        except (ValueError, LookupError, TypeError):  # MOVED without a slot, for example
            return redis.ResponseError(text)
        if isinstance(error, redis.ConnectionError):
            raise error
        return error

    def _charge(self, size: int) -> int:
        self._bytes += size
        if self._bytes > REPLY_BYTES_MAX:
            raise redis.InvalidResponse(
                f"the server's reply is longer than {REPLY_BYTES_MAX} bytes"
            )
        return 0


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
        buffer = self._buffer
        buffer.skip(builder.feed(buffer.unread()))
        while not builder.is_done:
            buffer._read_from_socket(length=builder.wanted, **options)
            buffer.skip(builder.feed(buffer.unread()))
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
    """redis-py's receive buffer, read as a whole."""

    def unread(self) -> bytes:
        """The bytes that were received and not read."""
        at = self._buffer.tell()
        data = self._buffer.read()
        self._buffer.seek(at)
        return data

    def skip(self, count: int) -> None:
        """This many bytes were read."""
        self._buffer.seek(count, os.SEEK_CUR)


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
    length = len(raw)
    number = 0
    if 2 <= length <= _DIGITS_MAX + 1:
        for at in range(1, length):
            digit = raw[at] - 48
            if digit < 0 or digit > 9:
                return _other_number(raw)
            number = number * 10 + digit
        return number
    return _other_number(raw)


def _other_number(raw: bytes) -> int:
    """The integer after the first byte of a line: with a sign, very long, or none at all."""
    if not _NUMBER.fullmatch(raw, 1):
        raise _invalid("a number is expected", raw)
    number = int(raw[1:])
    if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
        raise _invalid("a number of 64 bits is expected", raw)
    return number


def _invalid(what: str, raw: bytes) -> redis.InvalidResponse:
    return redis.InvalidResponse(f"{what}: {raw[:_SHOWN_BYTES]!r}")
