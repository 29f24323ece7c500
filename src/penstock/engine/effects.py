"""Effects: what a command has done, in words that do the same again without a clock and without dice.

    asked for                              effect
    XADD s MAXLEN ~ 1000 * temp 21         XADD s MAXLEN = 1042 1700000000000-0 temp 21
    XREADGROUP GROUP g c STREAMS s >       XCLAIM s g c 0 id ... TIME t RETRYCOUNT 1 FORCE JUSTID LASTID id
                                           XGROUP SETID s g id ENTRIESREAD n
    EXPIRE k 10                            PEXPIREAT k 1700000010000
    GET k  (its time is over)              DEL k

Most commands are their own effect: they change the same data in the same way whenever they run. A handler of
which that is not true calls `Context.record` with other words; then its own words are not used. What one
command does, or one transaction, is one unit: the sink is told where it begins and ends, and keeps together
what belongs together.

Effects are what a command did, not what it counted: `dirty` is Redis's number of changes, and there are
deliveries that Redis does not count.
"""

from __future__ import annotations

from penstock.core.frame import Frame


class EffectSink:
    """Who takes effects: persist/aof/journal.py. Units nest; the outermost counts."""

    __slots__ = ()

    def begin(self) -> None:
        """A unit begins."""
        raise NotImplementedError

    def end(self) -> None:
        """A unit ends."""
        raise NotImplementedError

    def abandon(self) -> None:
        """The unit that runs, however deep, was broken off: forget its effects."""
        raise NotImplementedError

    def verbatim(self, database: int, frame: Frame) -> None:
        """A command that is its own effect."""
        raise NotImplementedError

    def words(self, database: int, words: list[bytes]) -> None:
        """An effect by its words."""
        raise NotImplementedError

    def added(
        self, database: int, frame: Frame, fields_at: int, entry_id: bytes, trim: list[bytes] | None
    ) -> None:
        """An entry was added to the stream that the second word names: fields from `fields_at` on.

        `trim`: how to trim the stream afterwards, as in XADD's options.
        """
        raise NotImplementedError
