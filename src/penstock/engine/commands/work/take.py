"""A worker gets entries and keeps them: PENSTOCK TAKE, ADOPT, RENEW.

TAKE returns due rows first, then new entries. Each gets a lease, and its attempt counts from now on: an entry
that has used up its attempts goes to the dead letters before a handler sees it. The mode says what to take:

    ANY     rows that wait for their next attempt, and new entries; tells whether it left suspects
    ALONE   one suspect: its last attempt ended without an outcome, so it may have killed its worker
    NEW     new entries only, for the owner of a keyed stream; their attempts are counted by RENEW

A worker that got less than it asked for waits for an entry behind the two ids that TAKE returns, with XREAD.
It asks again by itself after the time that TAKE returns: when the next row falls due. Other workers may
settle their rows as retries that are due soon, so while they have rows, that time is short.

ADOPT gives all rows of a keyed stream to its new owner. RENEW extends leases and counts attempts; it returns
the ids that the worker has lost.
"""

from __future__ import annotations

from typing import Any

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups.results import PendingRow
from penstock.engine.commands.work.arguments import WorkArguments, work_group, work_keys
from penstock.engine.commands.work.calls import call
from penstock.engine.commands.work.owners import check_owner, is_owner
from penstock.engine.commands.work.rows import (
    COUNT_MAX,
    LOOK_MS,
    SEEN_MAX,
    WAITING,
    WINDOW_MS,
    GroupRows,
    is_suspect,
    shortest,
    spent_reason,
)
from penstock.engine.commands.work.send import delayed_waits, move_due
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError
from penstock.reply import Served

_MODES = (b"ANY", b"ALONE", b"NEW")
_LOOK_MAX = 100  # due rows that one call looks at beyond those that it returns


def penstock_take(context: Context, frame: Frame) -> list[Any]:
    """Take entries: [[id, fields, attempt, suspect] ...], suspects left, wait, ids of the buried, ends.

    wait: milliseconds until more may be due; -1 if time alone brings nothing. ends: the last ids of the
    stream and of the delayed entries.
    """
    arguments = WorkArguments(frame, 3, 4)
    stream, dead, delayed = arguments.keys[:3]
    group, consumer = arguments.word(), arguments.word()
    lease_ms = arguments.number(1, WINDOW_MS)
    attempts = arguments.number(1)
    count = arguments.number(1, COUNT_MAX)
    mode = arguments.word().upper()
    arguments.end()
    if mode not in _MODES:
        raise CommandError("mode must be ANY, ALONE or NEW")
    context.keyspace.stream_or_none(dead)
    context.keyspace.stream_or_none(delayed)
    check_owner(context, arguments.keys[3:], consumer)
    rows = GroupRows(context, stream, group, consumer)
    context.recorded = True
    move_due(context, stream, delayed)
    taken: list[Any] = []
    buried: list[bytes] = []
    left = 0
    limit = 1 if mode == b"ALONE" else count
    found: list[PendingRow] = []
    if mode == b"ANY":
        # Those that wait for their next attempt first: any number of suspects may be before them.
        found = [*rows.due_waiting(count + _LOOK_MAX), *filter(is_suspect, rows.due(_LOOK_MAX))]
    elif mode == b"ALONE":
        found = rows.due(_LOOK_MAX)
    for row in found:
        entry_id = row.id.text
        fields = rows.fields_or_none(entry_id)
        if fields is None:
            rows.acknowledge(entry_id)
        elif row.delivery_count >= attempts:
            rows.bury(dead, entry_id, row.delivery_count, spent_reason(row))
            buried.append(entry_id)
        elif is_suspect(row) != (mode == b"ALONE"):
            left += is_suspect(row)
        elif len(taken) < limit:
            rows.claim([entry_id], consumer, lease_ms, row.delivery_count + 1)
            taken.append([entry_id, fields, row.delivery_count + 1, int(is_suspect(row))])
    if mode != b"ALONE" and len(taken) < count:
        words = (group, consumer, b"COUNT", b"%d" % (count - len(taken)), b"STREAMS", stream, b">")
        served = call(context, "XREADGROUP", b"GROUP", *words)
        if isinstance(served, Served):
            entries = served.items[0][1].entries()
            begun = 0 if mode == b"NEW" else 1
            rows.claim([entry_id for entry_id, _ in entries], consumer, lease_ms, begun)
            taken += [[entry_id, fields, begun, 0] for entry_id, fields in entries]
    wait_ms = 0
    if len(taken) < limit:
        wait_ms = shortest([*_pending_waits(context, rows, mode), *delayed_waits(context, delayed)])
    ends = [_end(context, key) for key in (stream, delayed)]
    return [taken, int(left > 0), wait_ms, buried, ends]


def _pending_waits(context: Context, rows: GroupRows, mode: bytes) -> list[int]:
    """How long until rows of the group may be due. The owner of a keyed stream knows that by itself."""
    if mode == b"NEW":
        return []
    waits = [LOOK_MS] if rows.group.pending.count >= SEEN_MAX else []
    for row in rows.group.pending_rows(stream_id.SMALLEST, stream_id.LARGEST, SEEN_MAX):
        left_ms = WINDOW_MS - max(0, context.now_ms() - row.delivery_ms)
        is_known = left_ms > 0 and row.consumer in (WAITING, rows.consumer)
        waits.append(left_ms if is_known else LOOK_MS)
    return waits


def _end(context: Context, key: bytes) -> bytes:
    stream = context.keyspace.stream_or_none(key)
    return b"0-0" if stream is None else b"%d-%d" % (stream.last_ms, stream.last_seq)


def penstock_adopt(context: Context, frame: Frame) -> list[Any]:
    """Take all rows from an id on: [[id, fields, begun, suspect, due in] ...], next id or null, buried.

    Rows that wait for their next attempt stay where they are; the others now belong to the caller. Those
    whose attempt has begun are suspects.
    """
    arguments = WorkArguments(frame, 3)
    stream, dead, owner = arguments.keys
    group, consumer = arguments.word(), arguments.word()
    lease_ms = arguments.number(1, WINDOW_MS)
    attempts = arguments.number(1)
    start = stream_id.parse(arguments.word())
    count = arguments.number(1, COUNT_MAX)
    arguments.end()
    context.keyspace.stream_or_none(dead)
    check_owner(context, [owner], consumer)
    rows = GroupRows(context, stream, group, consumer)
    context.recorded = True
    found = rows.group.pending_rows(start, stream_id.LARGEST, count)
    adopted: list[Any] = []
    buried: list[bytes] = []
    for row in found:
        entry_id = row.id.text
        fields = rows.fields_or_none(entry_id)
        if fields is None:
            rows.acknowledge(entry_id)
        elif row.consumer == WAITING:
            due_in_ms = max(0, WINDOW_MS - max(0, context.now_ms() - row.delivery_ms))
            adopted.append([entry_id, fields, row.delivery_count, 0, due_in_ms])
        elif row.consumer != consumer and row.delivery_count >= attempts:
            rows.bury(dead, entry_id, row.delivery_count, spent_reason(row))
            buried.append(entry_id)
        else:
            rows.claim([entry_id], consumer, lease_ms, row.delivery_count)
            # Also of our own rows: a reply with them was lost, or the caller runs them and knows.
            suspect = int(row.delivery_count > 0)
            adopted.append([entry_id, fields, row.delivery_count, suspect, 0])
    return [adopted, found[-1].id.next().text if len(found) == count else None, buried]


def penstock_renew(context: Context, frame: Frame) -> list[bytes]:
    """Extend leases of my rows and set their attempts; return the ids of rows that are no longer mine."""
    arguments = WorkArguments(frame, 1, 2)
    group, consumer = arguments.word(), arguments.word()
    lease_ms = arguments.number(1, WINDOW_MS)
    wanted = []
    while arguments.more():
        wanted.append((arguments.id(), arguments.number(), arguments.number()))
    owned = len(arguments.keys) == 2 and is_owner(context, arguments.keys[1], consumer)
    rows = GroupRows(context, arguments.keys[0], group, consumer)
    context.recorded = True
    lost = []
    for entry_id, begun, now_begun in wanted:
        record = rows.mine_or_none(entry_id, begun)
        if record is None and owned:
            record = rows.waiting_or_none(entry_id, begun)
        if record is None or (len(arguments.keys) == 2 and not owned):
            lost.append(entry_id)
        elif rows.fields_or_none(entry_id) is None:
            rows.acknowledge(entry_id)
            lost.append(entry_id)
        else:
            rows.claim([entry_id], consumer, lease_ms, now_begun)
    return lost


_GROUP = "penstock"

COMMANDS = (
    Command(
        "PENSTOCK TAKE",
        penstock_take,
        -11,
        Flags.WRITE,
        NO_KEYS,
        "Take entries of a stream for a worker, each with a lease.",
        syntax="numkeys stream dead delayed [owner] group consumer lease-ms attempts count"
        " <ANY | ALONE | NEW>",
        since="0.2.0",
        complexity="O(n) for n pending entries",
        group=_GROUP,
        find_keys=work_keys,
        find_group=work_group,
        access=("RW access update", "RW insert", "RW access delete", "RO access"),
    ),
    Command(
        "PENSTOCK ADOPT",
        penstock_adopt,
        12,
        Flags.WRITE,
        NO_KEYS,
        "Take over the pending entries of a keyed stream.",
        syntax="3 stream dead owner group consumer lease-ms attempts start count",
        since="0.2.0",
        complexity="O(n) for n pending entries returned",
        group=_GROUP,
        find_keys=work_keys,
        find_group=work_group,
        access=("RW access update", "RW insert", "RO access"),
    ),
    Command(
        "PENSTOCK RENEW",
        penstock_renew,
        -7,
        Flags.WRITE,
        NO_KEYS,
        "Extend the leases of a worker's entries.",
        syntax="numkeys stream [owner] group consumer lease-ms [id attempt new-attempt ...]",
        since="0.2.0",
        complexity="O(log n) for each id, with n pending entries",
        group=_GROUP,
        find_keys=work_keys,
        find_group=work_group,
        access=("RW update", "RO access"),
    ),
)
