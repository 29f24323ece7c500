"""DUMP payloads: reads their nodes, builds them by hand, and runs DUMP and RESTORE on an engine.

    13 | 01 | 10 <key, 16 bytes> | 1f <listpack, 31 bytes> | ... | 0a 00 <crc64>
    type nodes  key as a string    node as a string          length, ids, groups: not read here

    12 | 01 | 02 0b <listpack, 11 bytes> | ... | 0a 00 <crc64>
    type nodes  02: a listpack; 01 would be one element as a plain string

Numbers and string lengths have Redis's variable-length form. Compressed strings are refused: run
`CONFIG SET rdbcompression no` before DUMP.
"""

from __future__ import annotations

from typing import Any

from penstock.engine.execute import TABLE
from penstock.engine.lookup import Lookup
from penstock.errors import CommandError
from penstock.persist.commands import dump
from tests.support.engine.engines import Bench, plain
from tests.support.engine.streams import frame_of
from tests.support.rdb.whole_files import crc_of
from tests.support.servers.raw_redis import Refusal

LOOKUP = Lookup((*TABLE.values(), *dump.COMMANDS))
# Written by 5.0, 7.0, 7.2, 8.6 and 8.8; they differ only after the nodes.
STREAM_TYPES = (15, 19, 21, 26, 27)
LIST_TYPE = 18  # written by 7.0 and later
PACKED = 2
FOOTER_BYTES = 10  # version and checksum
KEY_BYTES = 16


class DumpBench(Bench):
    """A bench that also knows DUMP and RESTORE."""

    def run(self, *words: bytes | str | int) -> Any:
        pieces = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        try:
            command = LOOKUP.find(frame_of(*pieces))
            return plain(self.engine.execute(command, frame_of(*pieces)))
        except CommandError as error:
            return Refusal(error.wire_text)


def sealed(body: bytes, version: int = 10) -> bytes:
    """A payload with this body, a version and a valid checksum."""
    data = body + version.to_bytes(2, "little")
    return data + crc_of(data).to_bytes(8, "little")


def body_of(payload: bytes) -> bytes:
    return payload[:-FOOTER_BYTES]


def stream_nodes(payload: bytes) -> list[tuple[bytes, bytes]]:
    """The 16-byte key and the listpack of every node, in order."""
    assert payload[0] in STREAM_TYPES, f"type {payload[0]} is no stream"
    count, at = read_length(payload, 1)
    nodes = []
    for _ in range(count):
        key, at = read_string(payload, at)
        assert len(key) == KEY_BYTES, key
        listpack, at = read_string(payload, at)
        nodes.append((key, listpack))
    assert at <= len(payload) - FOOTER_BYTES
    return nodes


def list_nodes(payload: bytes) -> list[bytes]:
    """The listpack of every node, in order."""
    assert payload[0] == LIST_TYPE, f"type {payload[0]} is no list of listpacks"
    count, at = read_length(payload, 1)
    nodes = []
    for _ in range(count):
        container, at = read_length(payload, at)
        assert container == PACKED, f"a node of kind {container}"
        listpack, at = read_string(payload, at)
        nodes.append(listpack)
    assert at == len(payload) - FOOTER_BYTES
    return nodes


def read_string(payload: bytes, at: int) -> tuple[bytes, int]:
    """The string at `at`, and the position after it."""
    size, at = read_length(payload, at)
    assert size <= len(payload) - at, f"a string of {size} bytes runs past the end"
    return payload[at : at + size], at + size


def read_length(payload: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and the position after it."""
    lead = payload[at]
    if lead < 0x40:
        return lead, at + 1
    if lead < 0x80:
        return (lead & 0x3F) << 8 | payload[at + 1], at + 2
    assert lead in (0x80, 0x81), f"0x{lead:02x} is no plain length; is rdbcompression off?"
    width = 4 if lead == 0x80 else 8
    return int.from_bytes(payload[at + 1 : at + 1 + width], "big"), at + 1 + width
