"""What a handler knows about its entry, and how it gives up on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.work import tracing
from penstock.work.payload import encode, text_of

if TYPE_CHECKING:
    from penstock.work.inbox import Once


DELAY_SECONDS_MAX = 315_360_000  # ten years


class Dead(PenstockError):
    """Raised by a handler: no more attempts; the entry goes to the dead letters with this reason."""

    def __init__(self, reason: object) -> None:
        super().__init__(reason)
        self.reason = text_of(reason)


@dataclass(frozen=True, slots=True)
class Sent:
    """One entry to add to a stream. Raises: TypeError, ValueError."""

    stream: str
    fields: list[bytes]
    delay: float = 0
    dedup: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.stream, str) or not isinstance(self.dedup, str | None):
            raise TypeError("the names of a stream and of a dedup are of type str")
        if not 0 <= self.delay <= DELAY_SECONDS_MAX:
            raise ValueError(f"delay: seconds from 0 to {DELAY_SECONDS_MAX}, not {self.delay!r}")


@dataclass(frozen=True, slots=True)
class Source:
    """Where entries come from, and how to find the stream for what their handler sends."""

    group: str
    stream: str
    route: Callable[[str, Any], str]


class Message:
    """The entry that a handler works on. In a batch it stands for all of them; `id` is the first."""

    def __init__(
        self, source: Source, ids: Sequence[str], attempt: int, key: str | None = None
    ) -> None:
        self._source = source
        self.stream = source.stream
        self.ids = list(ids)
        self.attempt = attempt
        self.key = key
        self.sent: list[Sent] = []

    @property
    def id(self) -> str:
        """The id of the entry: the same in every attempt, so it can be an idempotency key."""
        return self.ids[0]

    def send(
        self, stream: str, payload: Any, *, delay: float = 0, dedup: str | None = None
    ) -> None:
        """Add an entry to another stream if and only if this entry is settled as done, in one step.

        delay, dedup: as in Handler.send. Raises: BadPayload, TypeError, ValueError.
        """
        with tracing.sending(stream) as trace:
            fields = [*encode(payload), *trace]
        self.sent.append(Sent(self._source.route(stream, payload), fields, delay, dedup))

    def once(self, connection: Any, payloads: Sequence[Any] | None = None) -> Once:
        """A transaction in which effects happen once for each entry, whatever is repeated.

        `with msg.once(connection) as new:` gives a list: this entry's id, or nothing if it was done before.
        With the payloads of a batch it gives those that were not done before. The transaction also writes
        the entries' ids to the table `penstock_inbox`; it commits at the end of the block.
        """
        from penstock.work.inbox import Once  # noqa: PLC0415 - handlers without a database skip it

        given = list(self.ids if payloads is None else payloads)
        if len(given) != len(self.ids):
            raise ValueError(
                f"once needs {len(self.ids)} payloads, one for each entry of the batch"
            )
        names = [f"{self._source.group}/{self.stream}/{entry_id}" for entry_id in self.ids]
        return Once(connection, names, given)
