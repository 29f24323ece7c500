"""Dead letters: entries of STREAM:dead that a worker gave up, and the commands that give them back.

The entry keeps its fields byte for byte, and gets those in FACTS. To redrive it, the original entry is given
to its group as a row that is due. If it is no longer in its stream, it is added again, and all groups see it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.core.stream_id import StreamID

SUFFIX = b":dead"
REASON, TRACEBACK, ATTEMPTS = b"_reason", b"_traceback", b"_attempts"
SOURCE_STREAM, SOURCE_ID, GROUP, CONSUMER = (
    b"_source_stream",
    b"_source_id",
    b"_group",
    b"_consumer",
)
FACTS = (REASON, SOURCE_STREAM, SOURCE_ID, TRACEBACK, ATTEMPTS, GROUP, CONSUMER)

# The same as in the engine, which this package may not import; a test compares them.
WAITING = b"waiting"
WINDOW_MS = 86_400_000
DELAYED_SUFFIX = b":delayed"
_DELAYING = b"-"  # the consumer of delayed entries
_WORKER = re.compile(rb".+-\d+-[0-9a-f]{8}", re.DOTALL)  # host, process, random

Word = str | bytes | int


def is_worker(consumer: bytes) -> bool:
    """Whether a consumer has the name of a worker (penstock.work.names)."""
    return _WORKER.fullmatch(consumer) is not None


def has_due_time(consumer: bytes) -> bool:
    """Whether the idle times of a consumer's rows say when they are due, and nothing about their age."""
    return only_keeps(consumer) or is_worker(consumer)


def only_keeps(consumer: bytes) -> bool:
    """Whether a consumer never reads: its rows wait for their next attempt, or for a time."""
    return consumer in (WAITING, _DELAYING)


def due_in_ms(idle_ms: int) -> int:
    """The time until such a row is due: for its next attempt, or for other workers. 0 if it is."""
    return max(0, WINDOW_MS - idle_ms)


def facts_of(fields: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The fields that tell why an entry is dead and where it was."""
    return {name: value for name, value in fields if name in FACTS}


def claim_words(source: bytes, group: bytes, source_id: bytes) -> tuple[Word, ...]:
    """Gives an entry back to its group, due at once, with all its attempts."""
    due = ("IDLE", WINDOW_MS, "RETRYCOUNT", 0, "FORCE", "JUSTID")
    return ("XCLAIM", source, group, WAITING, 0, source_id, *due)


def add_words(source: bytes, fields: Sequence[tuple[bytes, bytes]]) -> tuple[Word, ...]:
    """Adds the entry again, without the facts."""
    return ("XADD", source, "*", *(word for one in fields if one[0] not in FACTS for word in one))


def drop_words(name: bytes, id_: StreamID) -> tuple[Word, ...]:
    """Removes a dead letter."""
    return ("XDEL", name, id_.text)
