"""Effects: the changes of a command, as words that repeat them without a clock and without random numbers.

    command                                effect
    XADD s MAXLEN ~ 1000 * temp 21         XADD s MAXLEN = 1042 1700000000000-0 temp 21
    XREADGROUP GROUP g c STREAMS s >       XCLAIM s g c 0 id ... TIME t RETRYCOUNT 1 FORCE JUSTID LASTID id
                                           XGROUP SETID s g id ENTRIESREAD n
    EXPIRE k 10                            PEXPIREAT k 1700000010000
    GET k  (it has expired)                DEL k

Most commands are their own effect: they change the same data in the same way whenever they run. The handler
of any other command calls `Context.record` with other words, which replace its own. The effects of one
command or one transaction are one unit: the sink learns where it begins and ends, and keeps it together.

Effects and `dirty` differ: `dirty` is Redis's count of changes, and Redis does not count some deliveries.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.core.groups.group import Group
from penstock.core.stream import Stream


class EffectSink:
    """Receives effects; implemented by persist/aof/journal.py. Units nest; the outermost counts."""

    __slots__ = ()

    def begin(self) -> None:
        """A unit begins."""
        raise NotImplementedError

    def end(self) -> None:
        """A unit ends."""
        raise NotImplementedError

    def abandon(self) -> None:
        """The running unit was interrupted, at whatever depth: drop its effects."""
        raise NotImplementedError

    def verbatim(self, database: int, frame: Frame) -> None:
        """A command that is its own effect."""
        raise NotImplementedError

    def words(self, database: int, words: list[bytes]) -> None:
        """An effect, given by its words."""
        raise NotImplementedError

    def added(
        self,
        database: int,
        frame: Frame,
        fields_at: int,
        stream: Stream,
        options: list[bytes] | None,
    ) -> None:
        """An entry, now the last, was added to the stream that the second word names.

        Its fields are the words from `fields_at` on.

        `options` of XADD: who sent it, and how to trim the stream afterwards.
        """
        raise NotImplementedError

    def delivered(
        self,
        database: int,
        names: tuple[bytes, bytes, bytes],
        group: Group,
        ids: list[bytes],
        when_ms: int,
    ) -> None:
        """A consumer got entries for the first time, and the group's position moved.

        `names`: of the key, the group and the consumer.
        """
        raise NotImplementedError
