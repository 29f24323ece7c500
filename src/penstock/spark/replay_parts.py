"""The parts of a replay: each run continues where the last one ended.

A part is a range of ids of each stream. Before it is written, its range is noted in a key of the target's
server. Its number is recorded together with its entries (sink/commit.py), so a part is written once, and a
part that was noted but not written is written first, with the range that was noted.

    record 0, no note           part 1: everything that is there
    record 2, note 3            part 3 again, with its range
    record 3, note 3            part 4: what came after part 3, or nothing
    record 1, no note           written by penstock 0.1: where it ended is unknown

The note of a part is set only if there is none, so two runs at the same time write the same range.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.core.stream_id import StreamID
from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName
from penstock.spark.sink.staging import hash_tag
from penstock.spark.sink.writer import batch_write

Ends = Mapping[str, StreamID]


class EndUnknown(PenstockError):
    """A replay cannot be continued, because nobody noted where it ended."""


@dataclass(frozen=True, slots=True)
class Part:
    """The entries of each stream after an id, up to and including another one."""

    number: int
    after: Ends
    until: Ends

    def to_json(self) -> str:
        """The note of this part."""
        return json.dumps({"after": _texts(self.after), "until": _texts(self.until)})


class ReplayParts:
    """The parts of the replay with this name into one stream."""

    def __init__(self, servers: Servers, name: str, target: str) -> None:
        self._servers = servers
        self._name = name
        self._target = target.encode()

    def next(self, newest: Callable[[Ends], Ends]) -> Part | None:
        """The part to write now, noted; None if there is nothing new.

        newest: for the ends of the last part, the newest id of each stream that has entries after them.
        Raises: EndUnknown.
        """
        while True:
            written = self._written()
            noted = self._note(written + 1)
            if noted is not None:
                return noted
            last = self._note(written) if written else Part(0, {}, {})
            if last is not None:
                break
            if self._written() == written:  # another run has not just written the next part
                raise EndUnknown(
                    f"{self._name} was replayed by an older version, which did not note where it ended:"
                    " use --again to replay everything, or another name and a start (--since)"
                )
        found = newest(last.until)
        if not found:
            return None
        part = Part(written + 1, last.until, {**last.until, **found})
        self._ask("SET", self._key(part.number), part.to_json(), "NX")
        return self._note(part.number)

    def finish(self, part: Part) -> None:
        """After a part was written: delete the note of the one before.

        A part without entries, because its stream was trimmed, has not been recorded by the sink.
        """
        if self._written() < part.number:
            self._ask("SET", self._record, str(part.number))
        self._ask("DEL", self._key(part.number - 1))

    def forget(self) -> None:
        """Forget all parts, so that the replay begins again."""
        written = self._written()
        for number in (written, written + 1):
            self._ask("DEL", self._key(number))
        self._ask("DEL", self._record)

    @property
    def _record(self) -> bytes:
        return batch_write(self._name).record_key(self._target)

    def _written(self) -> int:
        """The number of the last part that was written."""
        return int(self._ask("GET", self._record) or 0)

    def _note(self, number: int) -> Part | None:
        text = self._ask("GET", self._key(number))
        if text is None:
            return None
        found = json.loads(text)
        return Part(number, _ids(found["after"]), _ids(found["until"]))

    def _key(self, number: int) -> bytes:
        place = (hash_tag(self._target), self._name.encode(), number, self._target)
        return b"penstock:replay:{%b}:%b:%d:%b" % place

    def _ask(self, *words: bytes | str) -> bytes | None:
        answer: bytes | None = self._servers.ask(StreamName(self._target), *words)
        return answer


def _texts(ends: Ends) -> dict[str, str]:
    return {stream: str(end) for stream, end in ends.items()}


def _ids(texts: dict[str, str]) -> dict[str, StreamID]:
    return {stream: StreamID(*map(int, text.split("-"))) for stream, text in texts.items()}
