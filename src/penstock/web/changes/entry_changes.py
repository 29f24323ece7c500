"""Changes that a page proposes: the very commands, and what they would do, before anything is done.

A change is planned by asking only. Carrying it out goes through Server.change, which refuses on a
dashboard that only reads. Between the two the stream may have moved on; so what is planned as "up to an
id" names that id, and never "the oldest thousand", and a reset that was shown is the reset that is sent.
A change that would do nothing has no command: by the time of a yes it might do something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.client.replies import Entry, Reply, array, entries, number, parts
from penstock.client.xinfo import GroupInfo
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID, parse
from penstock.errors import CommandError
from penstock.human.show import quoted, size_text, time_text
from penstock.web.http.names import escaped_text
from penstock.web.model.facts import StreamFacts
from penstock.web.model.stream_page import OLDEST, Reading, behind, count_for, read_entries
from penstock.web.model.values import preview
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import Away, ServerClient

SAMPLE_ENTRIES = 5
COUNTED_MAX = 100_000
COUNT_CHUNK = 5000
PENDING_COUNTED_MAX = 1000
IDS_SHOWN = 8
WORD_CHARACTERS_MAX = 100
BECAME_SHORTER = "the stream became shorter meanwhile: look again"

_NEEDS_QUOTES = re.compile(r"[\s\"']|^$")
_NEW_ID = re.compile(r"\*|\d+(-(\d+|\*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Change:
    """A title, what will happen in words, and the commands."""

    title: str
    commands: tuple[tuple[Word, ...], ...]
    effects: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def command_lines(self) -> list[str]:
        """The commands as redis-cli would take them."""
        return [" ".join(_shown(word) for word in words) for words in self.commands]


async def carry_out(server: ServerClient, change: Change) -> list[Reply]:
    """Send the commands, one after the other. Raises: Refused (also on a dashboard that only reads), Away."""
    replies: list[Reply] = []
    for words in change.commands:
        try:
            replies.append(await server.change(*words))
        except (Refused, Away) as error:
            if not replies:
                raise
            done = f"{len(replies)} of {len(change.commands)} commands were done, then: {error}"
            raise type(error)(done) from None
    return replies


def plan_add(name: bytes, fields: Sequence[tuple[bytes, bytes]], id_: str = "*") -> Change:
    """Add an entry. Raises: Refused if there is no field, or no id that XADD would take as one."""
    if not fields:
        raise Refused("an entry needs a field")
    words: list[Word] = ["XADD", name, _new_id(id_ or "*")]
    for field_, value in fields:
        words += [field_, value]
    return Change("Add an entry", (tuple(words),), (f"adds {preview(fields)}",))


def _new_id(text: str) -> str:
    """What is no id may be an option of XADD, and then the first field would be the id."""
    try:
        if _NEW_ID.fullmatch(text):
            parse(text.replace("*", "0").encode())
            return text
    except CommandError:
        pass  # larger than ids are
    raise Refused(f"{quoted(text.encode())} is no id: write *, ms-* or ms-seq")


def plan_delete(name: bytes, ids: Sequence[StreamID], groups: Sequence[GroupInfo]) -> Change:
    """Delete entries. Raises: Refused if none is chosen."""
    if not ids:
        raise Refused("no entry is chosen")
    warnings = []
    if any(group.pending for group in groups):
        warnings.append(
            "an entry that is pending stays in the pending list of its group, without its fields"
        )
    if any(group.last_id < max(ids) for group in groups):
        warnings.append(
            "a group that has not read it yet never will, and may not know its lag any more"
        )
    effects = (f"deletes {len(ids)} of the stream's entries: {some_ids(ids)}",)
    return Change(
        "Delete entries", (("XDEL", name, *(id_.text for id_ in ids)),), effects, tuple(warnings)
    )


async def plan_trim_before(server: ServerClient, facts: StreamFacts, start: StreamID) -> Change:
    """Delete all entries below an id, with a look at what goes."""
    if facts.last_id < LARGEST:
        start = min(start, facts.last_id.next())  # what comes meanwhile was not shown, and stays
    first = await read_entries(server, facts.name, OLDEST, SAMPLE_ENTRIES)
    going = [entry for entry in first if entry.id < start]
    count, exact = await _count_below(server, facts, start)
    if not count:
        return _trim_of_nothing(f"no entry lies before {start}")
    size = facts.mean_bytes * count
    goes = f"{'' if exact else 'more than '}{count:,} of {facts.length:,} entries"
    effects = [f"deletes {goes}, about {size_text(int(size))}"]
    effects += [f"from {entry_line(entry)}" for entry in going]
    effects.append(f"the first that stays: {start} ({time_text(start.ms)}) or what follows it")
    warnings = blockers_of_trim(facts, start) + await _emptied_by_trim(server, facts, start)
    command = ("XTRIM", facts.name, "MINID", "=", start.text)
    return Change("Trim the stream", (command,), tuple(effects), tuple(warnings))


async def plan_trim_to_length(server: ServerClient, facts: StreamFacts, length: int) -> Change:
    """Keep the newest entries: planned as an id, so that what came meanwhile is kept as well."""
    if length >= facts.length:
        return _trim_of_nothing(f"there are {facts.length:,} entries")
    if length == 0:
        return await plan_trim_before(server, facts, behind_all(facts))
    return await plan_trim_before(server, facts, await _id_from_end(server, facts, length))


def behind_all(facts: StreamFacts) -> StreamID:
    """The id that follows the last one. Raises: Refused where ids end."""
    if facts.last_id == LARGEST:
        raise Refused(
            f"the last id is the largest that there is, {LARGEST}: no id follows it that a trim could name;"
            " delete its entry, and trim before it"
        )
    return facts.last_id.next()


def _trim_of_nothing(why: str) -> Change:
    return Change("Trim the stream", (), (f"nothing: {why}",))


async def _id_from_end(server: ServerClient, facts: StreamFacts, rank: int) -> StreamID:
    """The id of the entry that is `rank` from the end. Raises: Refused where counting would take too long."""
    if facts.length - rank <= COUNTED_MAX:
        reading, steps = OLDEST, facts.length - rank + 1
    elif rank <= COUNTED_MAX:
        reading, steps = Reading(facts.last_id, rising=False), rank
    else:
        raise Refused(
            f"neither end is within {COUNTED_MAX:,} entries of that: trim before an id or a moment instead"
        )
    chunk = count_for(facts.mean_bytes, COUNT_CHUNK)
    while steps > 0:
        read = await read_entries(server, facts.name, reading, min(chunk, steps))
        if not read:
            raise Refused(BECAME_SHORTER)
        steps -= len(read)
        last = read[-1].id
        onwards = behind(reading, last)
        if onwards is None and steps:
            raise Refused(BECAME_SHORTER)
        reading = onwards or reading
    return last


async def _count_below(
    server: ServerClient, facts: StreamFacts, start: StreamID
) -> tuple[int, bool]:
    """How many entries lie below an id, as far as counting is cheap; whether that is all."""
    if start == SMALLEST or not facts.length:
        return 0, True
    end = start.previous()
    try:
        found = array(await server.ask("PENSTOCK", "SPLITS", facts.name, "-", end.text, 1))
        return sum(number(parts(part, 3)[2]) for part in found), True
    except Refused:
        pass  # not our server: entries are counted by reading them
    chunk = count_for(facts.mean_bytes, COUNT_CHUNK)
    counted, at = 0, SMALLEST
    while counted < COUNTED_MAX:
        read = entries(await server.ask("XRANGE", facts.name, at.text, end.text, "COUNT", chunk))
        counted += len(read)
        if len(read) < chunk:
            return counted, True
        at = read[-1].id.next()
    return counted, False


def blockers_of_trim(facts: StreamFacts, start: StreamID) -> list[str]:
    """Which groups would lose entries that they have not read."""
    return [
        f"group {quoted(group.name)} has not read past {group.last_id}: what goes behind that, it never gets"
        for group in facts.groups
        if facts.first is not None and group.last_id < start and group.last_id < facts.last_id
    ]


async def _emptied_by_trim(server: ServerClient, facts: StreamFacts, start: StreamID) -> list[str]:
    """Which groups have pending entries that would lose their fields."""
    holding = [group for group in facts.groups if group.pending]
    end = start.previous().text
    questions = [
        ("XPENDING", facts.name, group.name, "-", end, PENDING_COUNTED_MAX + 1) for group in holding
    ]
    found = []
    for group, reply in zip(holding, await server.ask_all(questions), strict=True):
        count = len(reply) if isinstance(reply, list) else 0  # a group may be gone by now
        if count:
            many = f"{count:,}" if count <= PENDING_COUNTED_MAX else f"over {PENDING_COUNTED_MAX:,}"
            found.append(
                f"group {quoted(group.name)} has {many} pending of what lies before {start}:"
                " they stay pending, without their fields"
            )
    return found


def entry_line(entry: Entry) -> str:
    return f"{entry.id} {time_text(entry.id.ms)} {preview(entry.fields)}"


def some_ids(ids: Sequence[StreamID]) -> str:
    """The first of them, and how many follow."""
    shown = ", ".join(str(id_) for id_ in ids[:IDS_SHOWN])
    return shown + (f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else "")


def _shown(word: Word) -> str:
    """As redis-cli reads it back, byte for byte, unless it is too long to be shown."""
    data = word if isinstance(word, bytes) else str(word).encode()
    text = escaped_text(data)
    if text.encode() != data or _NEEDS_QUOTES.search(text):
        text = '"' + text.replace('"', '\\"') + '"'
    return text if len(text) <= WORD_CHARACTERS_MAX else text[:WORD_CHARACTERS_MAX] + "..."
