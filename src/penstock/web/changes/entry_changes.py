"""Plans changes of entries: the exact commands and their effects, before anything is sent.

Planning only reads. Changes are sent through ServerClient.change, which refuses on a read-only dashboard and
to viewers. The stream may change between planning and sending. So a plan names ids ("up to 5-0") and never
numbers ("the oldest thousand"), and exactly the commands that were shown are sent. A plan without effect has
no commands, because they could have an effect by the time the user confirms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.client.replies import Entry, Reply, array, entries, number, parts
from penstock.client.xinfo import GroupInfo
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID, parse
from penstock.errors import InvalidID
from penstock.human.show import counted, quoted, size_text, time_text
from penstock.web.http.names import escaped_text
from penstock.web.http.sessions import Session
from penstock.web.model.facts import StreamFacts
from penstock.web.model.stream_page import OLDEST, Reading, behind, count_for, read_entries
from penstock.web.model.values import preview
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient, ServerUnreachable

SAMPLE_ENTRIES = 5
COUNTED_MAX = 100_000
COUNT_CHUNK = 5000
PENDING_COUNTED_MAX = 1000
IDS_SHOWN = 8
WORD_CHARACTERS_MAX = 100
BECAME_SHORTER = "the stream became shorter in the meantime: try again"

_NEEDS_QUOTES = re.compile(r"[\s\"']|^$")
_NEW_ID = re.compile(r"\*|\d+(-(\d+|\*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Change:
    """A title, the commands, and their effects as text.

    `each_needs_all_before`: a command that had no effect (an empty list) ends the change.
    """

    title: str
    commands: tuple[tuple[Word, ...], ...]
    effects: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())
    each_needs_all_before: bool = False

    @property
    def command_lines(self) -> list[str]:
        """The commands as one would type them into redis-cli."""
        return [" ".join(_shown(word) for word in words) for words in self.commands]


async def carry_out(server: ServerClient, session: Session, change: Change) -> list[Reply]:
    """Send the commands in order. Raises: Refused (also to users who may not), ServerUnreachable."""
    replies: list[Reply] = []
    for words in change.commands:
        try:
            reply = await server.change(session, *words)
            if change.each_needs_all_before and reply == []:
                raise Refused(f"{_shown(words[0])} had no effect")
            replies.append(reply)
        except (Refused, ServerUnreachable) as error:
            if not replies:
                raise
            done = f"{len(replies)} of {len(change.commands)} commands succeeded, then: {error}"
            raise type(error)(done) from None
    return replies


def plan_add(name: bytes, fields: Sequence[tuple[bytes, bytes]], id_: str = "*") -> Change:
    """Add an entry. Raises: Refused if there are no fields, or if the id is wrong."""
    if not fields:
        raise Refused("an entry needs at least one field")
    words: list[Word] = ["XADD", name, _new_id(id_ or "*")]
    for field_, value in fields:
        words += [field_, value]
    return Change("Add an entry", (tuple(words),), (f"adds {preview(fields)}",))


def _new_id(text: str) -> str:
    """Check an id: XADD could take other text for an option, and the first field for the id."""
    try:
        if _NEW_ID.fullmatch(text):
            parse(text.replace("*", "0").encode())
            return text
    except InvalidID:
        pass  # larger than the largest id
    raise Refused(f"{quoted(text.encode())} is not an id: write *, ms-* or ms-seq")


def plan_delete(name: bytes, ids: Sequence[StreamID], groups: Sequence[GroupInfo]) -> Change:
    """Delete entries. Raises: Refused if none is selected."""
    if not ids:
        raise Refused("no entry is selected")
    warnings = []
    if any(group.pending for group in groups):
        warnings.append(
            "pending entries stay in the pending list of their group, without their fields"
        )
    if any(group.last_id < max(ids) for group in groups):
        warnings.append(
            "groups that have not read these entries never will, and their lag may become unknown"
        )
    effects = (f"deletes {counted(len(ids), 'entry')}: {some_ids(ids)}",)
    return Change(
        "Delete entries", (("XDEL", name, *(id_.text for id_ in ids)),), effects, tuple(warnings)
    )


async def plan_trim_before(server: ServerClient, facts: StreamFacts, start: StreamID) -> Change:
    """Delete all entries below an id. The effects show some of them."""
    if facts.last_id < LARGEST:
        start = min(start, facts.last_id.next())  # keep entries added in the meantime
    first = await read_entries(server, facts.name, OLDEST, SAMPLE_ENTRIES)
    going = [entry for entry in first if entry.id < start]
    count, exact = await _count_below(server, facts, start)
    if not count:
        return _trim_of_nothing(f"no entry is before {start}")
    size = facts.mean_bytes * count
    goes = f"{'' if exact else 'more than '}{count:,} of {facts.length:,} entries"
    effects = [f"deletes {goes}, about {size_text(int(size))}"]
    effects += [f"for example {entry_line(entry)}" for entry in going]
    effects.append(f"keeps entries from {start} ({time_text(start.ms)}) on")
    warnings = blockers_of_trim(facts, start) + await _emptied_by_trim(server, facts, start)
    command = ("XTRIM", facts.name, "MINID", "=", start.text)
    return Change("Trim the stream", (command,), tuple(effects), tuple(warnings))


async def plan_trim_to_length(server: ServerClient, facts: StreamFacts, length: int) -> Change:
    """Keep the newest entries. The plan names an id, so that entries added in the meantime are kept too."""
    if length >= facts.length:
        return _trim_of_nothing(f"the stream has only {facts.length:,} entries")
    if length == 0:
        return await plan_trim_before(server, facts, behind_all(facts))
    return await plan_trim_before(server, facts, await _id_from_end(server, facts, length))


def behind_all(facts: StreamFacts) -> StreamID:
    """The id after the last one. Raises: Refused if the last one is the largest possible id."""
    if facts.last_id == LARGEST:
        raise Refused(
            f"the last id is the largest possible id, {LARGEST}, so no trim can include it;"
            " delete that entry and trim before it"
        )
    return facts.last_id.next()


def _trim_of_nothing(why: str) -> Change:
    return Change("Trim the stream", (), (f"nothing to do: {why}",))


async def _id_from_end(server: ServerClient, facts: StreamFacts, rank: int) -> StreamID:
    """The id of the entry at `rank` from the end. Raises: Refused if counting would take too long."""
    if facts.length - rank <= COUNTED_MAX:
        reading, steps = OLDEST, facts.length - rank + 1
    elif rank <= COUNTED_MAX:
        reading, steps = Reading(facts.last_id, rising=False), rank
    else:
        raise Refused(
            f"this is more than {COUNTED_MAX:,} entries from both ends: trim before an id or a time instead"
        )
    chunk = count_for(facts.mean_bytes, COUNT_CHUNK)
    while steps > 0:
        read = await read_entries(server, facts.name, reading, min(chunk, steps))
        if not read:
            raise Refused(BECAME_SHORTER)
        steps -= len(read)
        last = read[-1].id
        following = behind(reading, last)
        if following is None and steps:
            raise Refused(BECAME_SHORTER)
        reading = following or reading
    return last


async def _count_below(
    server: ServerClient, facts: StreamFacts, start: StreamID
) -> tuple[int, bool]:
    """The number of entries below an id, counted up to a limit, and whether it is exact."""
    if start == SMALLEST or not facts.length:
        return 0, True
    end = start.previous()
    try:
        found = array(await server.ask("PENSTOCK", "SPLITS", facts.name, "-", end.text, 1))
        return sum(number(parts(part, 3)[2]) for part in found), True
    except Refused:
        pass  # not a penstock server: count entries by reading them
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
    """The groups that would lose unread entries."""
    return [
        f"group {quoted(group.name)} has read up to {group.last_id} and will never get the deleted entries"
        " after that"
        for group in facts.groups
        if facts.first is not None and group.last_id < start and group.last_id < facts.last_id
    ]


async def _emptied_by_trim(server: ServerClient, facts: StreamFacts, start: StreamID) -> list[str]:
    """The groups with pending entries that would lose their fields."""
    holding = [group for group in facts.groups if group.pending]
    end = start.previous().text
    questions = [
        ("XPENDING", facts.name, group.name, "-", end, PENDING_COUNTED_MAX + 1) for group in holding
    ]
    found = []
    for group, reply in zip(holding, await server.ask_all(questions), strict=True):
        count = len(reply) if isinstance(reply, list) else 0  # the group may have been deleted
        if count:
            many = f"{count:,}" if count <= PENDING_COUNTED_MAX else f"over {PENDING_COUNTED_MAX:,}"
            found.append(
                f"group {quoted(group.name)} has {many} pending entries before {start}:"
                " they stay pending, without their fields"
            )
    return found


def entry_line(entry: Entry) -> str:
    return f"{entry.id} {time_text(entry.id.ms)} {preview(entry.fields)}"


def some_ids(ids: Sequence[StreamID]) -> str:
    """The first ids, and the number of the others."""
    shown = ", ".join(str(id_) for id_ in ids[:IDS_SHOWN])
    return shown + (f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else "")


def _shown(word: Word) -> str:
    """A word quoted for redis-cli, byte for byte, shortened if it is long."""
    data = word if isinstance(word, bytes) else str(word).encode()
    text = escaped_text(data)
    if text.encode() != data or _NEEDS_QUOTES.search(text):
        text = '"' + text.replace('"', '\\"') + '"'
    return text if len(text) <= WORD_CHARACTERS_MAX else text[:WORD_CHARACTERS_MAX] + "..."
