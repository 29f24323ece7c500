"""An engine that knows DUMP and RESTORE, and payloads made by hand."""

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
SEAL_BYTES = 10


class DumpBench(Bench):
    """A bench whose table has the rows of persist, too."""

    def run(self, *words: bytes | str | int) -> Any:
        pieces = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        try:
            command = LOOKUP.find(frame_of(*pieces))
            return plain(self.engine.execute(command, frame_of(*pieces)))
        except CommandError as error:
            return Refusal(error.wire_text)


def sealed(body: bytes, version: int = 10) -> bytes:
    """A payload of these bytes, with a version and the checksum that belongs to them."""
    data = body + version.to_bytes(2, "little")
    return data + crc_of(data).to_bytes(8, "little")


def body_of(payload: bytes) -> bytes:
    return payload[:-SEAL_BYTES]
