"""Reads entries from JSON lines: one object per line, one field per name.

    {"sku": "A1", "qty": 2, "tags": ["x"]}      sku=A1  qty=2  tags=["x"]

Strings are stored unchanged, other values as JSON. Names may repeat. Blank lines are skipped.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import BinaryIO, cast

CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class InputLine:
    """An entry and its line number."""

    number: int
    fields: list[tuple[bytes, bytes]]


class JsonObject(dict[str, object]):
    """An object that also keeps its members in order, including repeated names."""

    def __init__(self, members: list[tuple[str, object]]) -> None:
        super().__init__(members)
        self.members = members


class JsonInput:
    """The lines of a byte stream, as they arrive, up to the first bad one."""

    def __init__(self, source: BinaryIO) -> None:
        # read1 returns the bytes available now; read would wait for a full chunk.
        self._source = cast(BufferedReader, source)
        self._line_number = 0
        self.bytes_read = 0
        self.bytes_total_or_none = _size_or_none(source)
        self.problem_or_none: str | None = None

    def batches(self) -> Iterator[list[InputLine]]:
        """Entries that arrived together. A bad line ends the iteration and sets `problem_or_none`."""
        for lines in self._arrivals():
            batch: list[InputLine] = []
            for line in lines:
                self._line_number += 1
                if not line.strip():
                    continue
                try:
                    batch.append(InputLine(self._line_number, parse_entry(line)))
                except ValueError as error:
                    self.problem_or_none = f"line {self._line_number}: {error}"
                    break
            if batch:
                yield batch
            if self.problem_or_none is not None:
                return

    def _arrivals(self) -> Iterator[list[bytes]]:
        rest = bytearray()
        while chunk := self._source.read1(CHUNK_BYTES):
            self.bytes_read += len(chunk)
            whole, end, begun = chunk.rpartition(b"\n")
            if not end:
                rest += chunk
                continue
            rest += whole
            yield bytes(rest).split(b"\n")
            rest = bytearray(begun)
        if rest:
            yield [bytes(rest)]


def parse_entry(line: bytes) -> list[tuple[bytes, bytes]]:
    """The fields of one line. Raises: ValueError, which says what is wrong."""
    try:
        value = json.loads(
            line.decode(), object_pairs_hook=JsonObject, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, JsonObject):
        raise ValueError("not a JSON object")
    if not value.members:
        raise ValueError("an entry needs at least one field")
    try:
        return [(name.encode(), _encode(member)) for name, member in value.members]
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair, which UTF-8 cannot encode") from None


def _encode(member: object) -> bytes:
    if isinstance(member, str):
        return member.encode()
    return json.dumps(member, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _size_or_none(source: BinaryIO) -> int | None:
    """The size of a regular file, None for anything else."""
    try:
        status = os.fstat(source.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
