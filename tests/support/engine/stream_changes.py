"""The events, the number of changes and the broken watches of each stream command.

Measured on Redis 7.0.15, the commands and options of Redis 8 on 8.6.2;
tests/differential/replies/test_stream_events.py measures it again.
"""

from __future__ import annotations

from dataclasses import dataclass

ADDED = "XADD s 1 k v; XADD s 2 k v; XADD s 3 k v"
GROUPED = f"{ADDED}; XGROUP CREATE s g 0"
PENDING = f"{GROUPED}; XREADGROUP GROUP g a COUNT 2 STREAMS s >"
READ_UP = f"{GROUPED}; XREADGROUP GROUP g a STREAMS s >"
MADE_CONSUMER = "xgroup-createconsumer s"


@dataclass(frozen=True)
class Change:
    """One command after a set-up, and its effects."""

    before: str
    line: str
    events: tuple[str, ...]
    dirty: int
    breaks_watch: bool = False

    def __str__(self) -> str:
        return f"{self.before.rpartition('; ')[2]}; {self.line}".lstrip("; ")


def _value(before: str, line: str, dirty: int, *events: str) -> Change:
    """A change of the entries, which breaks watches on the key."""
    return Change(before, line, events, dirty, True)


def _side(before: str, line: str, dirty: int, *events: str) -> Change:
    """A change of anything else, which breaks no watch."""
    return Change(before, line, events, dirty)


def _none(before: str, line: str) -> Change:
    return Change(before, line, (), 0)


CHANGES = [
    _value("", "XADD s 1 k v", 1, "new s", "xadd s"),
    _value(ADDED, "XADD s * k v", 1, "xadd s"),
    _value(ADDED, "XADD s MAXLEN 1 4 k v", 1, "xadd s", "xtrim s"),
    _value(ADDED, "XADD s MAXLEN 9 4 k v", 1, "xadd s"),
    _value("", "XADD s MAXLEN 0 4 k v", 1, "new s", "xadd s", "xtrim s"),
    _none("", "XADD s NOMKSTREAM 4 k v"),
    _none(ADDED, "XADD s 1 k v"),
    _value(ADDED, "XTRIM s MAXLEN 1", 2, "xtrim s"),
    _value(ADDED, "XTRIM s MINID 3", 2, "xtrim s"),
    _none(ADDED, "XTRIM s MAXLEN 5"),
    _none("", "XTRIM s MAXLEN 5"),
    _value(ADDED, "XDEL s 1 2 9", 2, "xdel s"),
    _none(ADDED, "XDEL s 9"),
    _side(ADDED, "XSETID s 9", 1, "xsetid s"),
    _side(ADDED, "XSETID s 9 ENTRIESADDED 100 MAXDELETEDID 5", 1, "xsetid s"),
    _none(ADDED, "XSETID s 1"),
    _value("", "XGROUP CREATE s g 0 MKSTREAM", 1, "new s", "xgroup-create s"),
    _side(ADDED, "XGROUP CREATE s g 0", 1, "xgroup-create s"),
    _side(ADDED, "XGROUP CREATE s g 0 MKSTREAM", 1, "xgroup-create s"),
    _none(GROUPED, "XGROUP CREATE s g 0"),
    _side(GROUPED, "XGROUP SETID s g 0", 1, "xgroup-setid s"),
    _side(PENDING, "XGROUP DESTROY s g", 1, "xgroup-destroy s"),
    _none(PENDING, "XGROUP DESTROY s h"),
    _side(GROUPED, "XGROUP CREATECONSUMER s g a", 1, MADE_CONSUMER),
    _none(PENDING, "XGROUP CREATECONSUMER s g a"),
    _side(PENDING, "XGROUP DELCONSUMER s g a", 1, "xgroup-delconsumer s"),
    _none(PENDING, "XGROUP DELCONSUMER s g b"),
    _side(GROUPED, "XREADGROUP GROUP g a STREAMS s >", 2, MADE_CONSUMER),
    _side(PENDING, "XREADGROUP GROUP g a STREAMS s >", 1),
    _side(GROUPED, "XREADGROUP GROUP g a NOACK STREAMS s >", 2, MADE_CONSUMER),
    _side(PENDING, "XREADGROUP GROUP g a NOACK STREAMS s >", 1),
    _none(READ_UP, "XREADGROUP GROUP g a STREAMS s >"),
    _none(READ_UP, "XREADGROUP GROUP g b STREAMS s >"),
    _side(PENDING, "XREADGROUP GROUP g a STREAMS s 0", 1),
    _side(PENDING, "XREADGROUP GROUP g b STREAMS s 0", 2, MADE_CONSUMER),
    _side(f"{READ_UP}; XGROUP SETID s g 0", "XREADGROUP GROUP g a STREAMS s >", 1),
    _side(
        f"{GROUPED}; XADD t 1 k v; XGROUP CREATE t g 0",
        "XREADGROUP GROUP g a STREAMS s t > >",
        4,
        MADE_CONSUMER,
        "xgroup-createconsumer t",
    ),
    _side(PENDING, "XACK s g 1 2 3", 2),
    _none(PENDING, "XACK s g 3"),
    _side(PENDING, "XCLAIM s g a 0 1", 1),
    _side(PENDING, "XCLAIM s g b 0 1 2", 3, MADE_CONSUMER),
    _side(PENDING, "XCLAIM s g b 0 1 2 JUSTID", 3, MADE_CONSUMER),
    _none(PENDING, "XCLAIM s g b 0 3"),
    _side(PENDING, "XCLAIM s g b 0 3 FORCE", 2, MADE_CONSUMER),
    _none(PENDING, "XCLAIM s g b 100000 1"),
    _side(PENDING, "XCLAIM s g a 0 9 LASTID 3", 1),
    _side(PENDING, "XCLAIM s g a 0 1 2 LASTID 3", 2),
    _none(PENDING, "XCLAIM s g a 0 9 LASTID 1"),
    _side(f"{PENDING}; XDEL s 1", "XCLAIM s g b 0 1", 1),
    _side(f"{PENDING}; XDEL s 1", "XCLAIM s g b 0 1 2", 3, MADE_CONSUMER),
    _side(f"{PENDING}; XDEL s 1", "XCLAIM s g b 0 1 LASTID 3", 1),
    _side(PENDING, "XAUTOCLAIM s g b 0 0", 3, MADE_CONSUMER),
    _side(PENDING, "XAUTOCLAIM s g a 0 0 JUSTID", 2),
    _none(PENDING, "XAUTOCLAIM s g b 100000 0"),
    _side(f"{PENDING}; XDEL s 1", "XAUTOCLAIM s g b 0 0", 3, MADE_CONSUMER),
    _side(f"{PENDING}; XDEL s 1 2", "XAUTOCLAIM s g b 0 0", 2),
    _none(PENDING, "XPENDING s g"),
    _none(PENDING, "XINFO STREAM s FULL"),
    _none(PENDING, "XREAD STREAMS s 0"),
    _none(PENDING, "XRANGE s - +"),
]

TWO_GROUPS = f"{PENDING}; XGROUP CREATE s h 0; XREADGROUP GROUP h a COUNT 1 STREAMS s >"
ONCE = "XADD s 99999999999999-0 k v; XADD s IDMP p m * k v"  # the same ids on every machine

CHANGES_8_6 = [
    _value(PENDING, "XDELEX s IDS 2 1 9", 1, "xdel s"),
    _none(PENDING, "XDELEX s ACKED IDS 2 1 2"),
    _value(PENDING, "XDELEX s DELREF IDS 2 1 2", 2, "xdel s"),
    _none(PENDING, "XDELEX s IDS 1 9"),
    _none("", "XDELEX s IDS 1 9"),
    _value(f"{PENDING}; XACK s g 1", "XDELEX s ACKED IDS 2 1 2", 1, "xdel s"),
    _value(PENDING, "XACKDEL s g IDS 2 1 2", 2, "xdel s"),
    _none(PENDING, "XACKDEL s g IDS 1 3"),
    _side(TWO_GROUPS, "XACKDEL s g ACKED IDS 2 1 2", 2),
    _value(TWO_GROUPS, "XACKDEL s g DELREF IDS 2 1 2", 2, "xdel s"),
    _side(f"{PENDING}; XDEL s 1", "XACKDEL s g IDS 1 1", 1),
    _value(f"{PENDING}; XDEL s 1", "XACKDEL s g IDS 2 1 2", 2, "xdel s"),
    _none(PENDING, "XTRIM s MAXLEN 0 ACKED"),
    _value(PENDING, "XTRIM s MAXLEN 0 DELREF", 3, "xtrim s"),
    _value(f"{READ_UP}; XACK s g 1 2", "XTRIM s MAXLEN 0 ACKED", 2, "xtrim s"),
    _value(PENDING, "XADD s MAXLEN 1 ACKED 4 k v", 1, "xadd s"),
    _value(PENDING, "XADD s MAXLEN 1 DELREF 4 k v", 1, "xadd s", "xtrim s"),
    _value("", "XADD s IDMP p m * k v", 1, "new s", "xadd s"),
    _side(ONCE, "XADD s IDMP p m * k v", 1),
    _side(ONCE, "XADD s IDMP p m MAXLEN 0 * k v", 1),
    _value(ONCE, "XADD s IDMP p n * k v", 1, "xadd s"),
    _value(ONCE, "XADD s IDMPAUTO p * k v", 1, "xadd s"),
    _side(ADDED, "XCFGSET s IDMP-DURATION 5", 1),
    _none(ADDED, "XCFGSET s IDMP-DURATION 100"),
    _side(ONCE, "XCFGSET s IDMP-MAXSIZE 5", 1),
    _side(ONCE, "XIDMPRECORD s p n 99999999999999-0", 1),
    _none(ONCE, "XIDMPRECORD s p m 99999999999999-1"),
    _side(GROUPED, "XREADGROUP GROUP g a CLAIM 0 STREAMS s >", 2, MADE_CONSUMER),
    _side(PENDING, "XREADGROUP GROUP g a CLAIM 0 STREAMS s >", 1),
    _side(PENDING, "XREADGROUP GROUP g a CLAIM 0 COUNT 1 STREAMS s >", 1),
    _side(PENDING, "XREADGROUP GROUP g a CLAIM 100000 NOACK STREAMS s >", 1),
    _side(READ_UP, "XREADGROUP GROUP g b CLAIM 0 STREAMS s >", 2, MADE_CONSUMER),
    _side(READ_UP, "XREADGROUP GROUP g b CLAIM 100000 STREAMS s >", 1, MADE_CONSUMER),
    _none(READ_UP, "XREADGROUP GROUP g a CLAIM 100000 STREAMS s >"),
    _side(READ_UP, "XREADGROUP GROUP g a CLAIM 0 NOACK STREAMS s >", 1),
    _none(f"{READ_UP}; XDEL s 1 2 3", "XREADGROUP GROUP g a CLAIM 0 STREAMS s >"),
]

# A reader waits and a command serves it: the events of both.
WOKEN = [
    (
        f"{READ_UP}; XGROUP CREATECONSUMER s g b",
        "XREADGROUP GROUP g b BLOCK 0 STREAMS s >",
        Change("", "XADD s 4 k v", ("xadd s",), 1, True),
    ),
    (
        READ_UP,
        "XREADGROUP GROUP g b BLOCK 0 STREAMS s >",
        Change("", "XADD s 4 k v", ("xadd s", MADE_CONSUMER), 2, True),
    ),
    (
        READ_UP,
        "XREADGROUP GROUP g b NOACK BLOCK 0 STREAMS s >",
        Change("", "XADD s 4 k v", ("xadd s", MADE_CONSUMER), 2, True),
    ),
    (
        READ_UP,
        "XREADGROUP GROUP g b BLOCK 0 STREAMS s >",
        Change("", "XGROUP DESTROY s g", ("xgroup-destroy s",), 1),
    ),
    (
        READ_UP,
        "XREAD BLOCK 0 STREAMS s $",
        Change("", "XADD s 4 k v", ("xadd s",), 1, True),
    ),
]


def commands(before: str) -> list[str]:
    """The commands of a set-up, one line each."""
    return [line for line in before.split("; ") if line]
