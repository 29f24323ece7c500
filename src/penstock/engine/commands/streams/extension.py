"""Reads streams in bulk, which Redis cannot: PENSTOCK SPLITS, PENSTOCK NODES, PENSTOCK HELP.

PENSTOCK APPENDBATCH is in append_batch.py, the commands of workers are in commands/work. docs/extensions.md
shows how to use them.
"""

from __future__ import annotations

from typing import Any

from penstock.core import listpack, memory, stream_id, stream_parts
from penstock.core.frame import Frame
from penstock.engine.arguments import INT64_MAX, int_at, int_between
from penstock.engine.commands.help import help_of
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, SUBCOMMAND_KEY, Command, Flags
from penstock.errors import CommandError, syntax_error
from penstock.reply import Status

PARTS_MAX = 65_536


def penstock_splits(context: Context, frame: Frame) -> list[Any]:
    """Split a range into parts of equal size: the first id, the last id and the count of each."""
    start = stream_id.parse_range_start(frame.piece(3))
    end = stream_id.parse_range_end(frame.piece(4))
    parts = int_at(frame, 5)
    if not 1 <= parts <= PARTS_MAX:
        raise CommandError(f"number of parts must be between 1 and {PARTS_MAX}")
    stream = context.keyspace.stream_or_none(frame.piece(2))
    if stream is None:
        return []
    return [
        [part.first.text, part.last.text, part.count]
        for part in stream_parts.parts_of(stream, start, end, parts)
    ]


def penstock_nodes(context: Context, frame: Frame) -> list[Any]:
    """The nodes of a range as they are in memory, and the start of the next call, or null."""
    start = stream_id.parse_range_start(frame.piece(3))
    end = stream_id.parse_range_end(frame.piece(4))
    limit = INT64_MAX
    if frame.count > 5:
        if frame.count != 7 or not frame.is_word(5, b"COUNT"):
            raise syntax_error()
        limit = int_between(frame, 6, 1, INT64_MAX, CommandError("COUNT must be > 0"))
    stream = context.keyspace.stream_or_none(frame.piece(2))
    if stream is None:
        return [None, []]
    nodes: list[list[bytes]] = []
    last: stream_parts.NodeInRange | None = None
    for found in stream_parts.nodes_in(stream, start, end):
        if last is not None and len(nodes) == limit:
            return [b"(" + last.last_id().text, nodes]
        node = found.node
        nodes.append([found.master.text, memory.cut(node, 0, listpack.total_bytes(node))])
        last = found
    return [None, nodes]


def penstock_help(_context: Context, _frame: Frame) -> list[Status]:
    """The subcommands of PENSTOCK."""
    return help_of("PENSTOCK", _HELP)


_HELP = [
    "SPLITS <key> <start> <end> <parts>",
    "    Split a range into parts of equal size: the first id, last id and count of each.",
    "NODES <key> <start> <end> [COUNT <count>]",
    "    The listpacks that hold a range: the next start, then the first id and bytes of each.",
    "APPENDBATCH <batch-id> <numkeys> <record> <stream> <staging> [...] [MAXLEN|MINID ...]",
    "    Append staged rows to a stream, unless the record shows that this batch was appended.",
    "TAKE <numkeys> <stream> <dead> <delayed> [<owner>] <group> <consumer> <lease> <attempts> ...",
    "    Take entries for a worker, each with a lease.",
    "ADOPT 3 <stream> <dead> <owner> <group> <consumer> <lease> <attempts> <start> <count>",
    "    Take over the pending entries of a keyed stream.",
    "RENEW <numkeys> <stream> [<owner>] <group> <consumer> <lease> [<id> <attempt> <new> ...]",
    "    Extend leases; the ids that are lost.",
    "SETTLE <numkeys> <stream> <dead> [...] <group> <consumer> [ACK|RETRY|DEAD ... [SEND ...]]",
    "    Settle the outcomes of a batch of attempts in one step.",
    "SEND <numkeys> <key> [...] <stream> <delayed> <mark> <delay> <mark-time> <count> <field> ...",
    "    Add an entry later, or once under a name.",
    "OWN 1 <owner> <consumer> <lease>",
    "    Own a keyed stream for a time.",
    "REAP 1 <stream> <group> <idle> [<consumer>]",
    "    Remove consumers that have no pending entries and are idle.",
    "GROUPS <key>",
    "    What each group of a stream has not read and not acknowledged, counted.",
    "RETENTION <key> [AGE <time>] [BYTES <size>] [LENGTH <count>] [ACKED yes] ...",
    "    What a retention policy would remove from a stream now.",
]

_GROUP = "penstock"

COMMANDS = (
    Command(
        "PENSTOCK SPLITS",
        penstock_splits,
        6,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Split a range of a stream into parts of equal size.",
        syntax="key start end parts",
        since="0.1.0",
        complexity="O(n) for the n nodes of the range; those in which a part ends are walked",
        group=_GROUP,
    ),
    Command(
        "PENSTOCK NODES",
        penstock_nodes,
        -5,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Read the nodes of a stream in bulk.",
        syntax="key start end [COUNT count]",
        since="0.1.0",
        complexity="O(n) for the n nodes returned",
        group=_GROUP,
    ),
    Command(
        "PENSTOCK HELP",
        penstock_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of PENSTOCK.",
        since="0.1.0",
        group=_GROUP,
    ),
)
