"""MEMORY USAGE, STATS, DOCTOR, PURGE, MALLOC-STATS, HELP."""

from __future__ import annotations

import gc
import sys
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at
from penstock.engine.commands.help import help_of
from penstock.engine.table import NO_KEYS, SUBCOMMAND_KEY, Command, Flags
from penstock.errors import syntax_error
from penstock.reply import OK, Double, Pairs, Status, Verbatim
from penstock.server.session.session import Session
from penstock.server.stats import process
from penstock.server.stats.info_sections import human
from penstock.server.stats.memory_usage import usage_bytes

SAMPLES_DEFAULT = 5

_LITTLE_BYTES = 5 << 20
_NEARLY_FULL = 0.9
_NO_FLAGS = Flags(0)


def usage(session: Session, frame: Frame) -> int | None:
    """The memory of a key and its value; null if the key does not exist."""
    samples = SAMPLES_DEFAULT
    at = 3
    while at < frame.count:
        if not frame.is_word(at, b"SAMPLES") or at + 1 == frame.count:
            raise syntax_error()
        samples = int_at(frame, at + 1)
        if samples < 0:
            raise syntax_error()
        at += 2
    key = frame.piece(2)
    value = session.keyspace.find(key)
    return None if value is None else usage_bytes(key, value, samples)


def stats(session: Session, frame: Frame) -> Pairs:
    """Memory statistics under Redis's names, as far as they apply."""
    server = session.server
    used = process.resident_bytes()
    peak = max(used, process.peak_bytes())
    startup = server.startup.process_bytes
    dataset = max(0, used - startup)
    keys = sum(len(keyspace.values) for keyspace in server.engine.context.databases)
    pairs: list[tuple[bytes, Any]] = [
        (b"peak.allocated", peak),
        (b"total.allocated", used),
        (b"startup.allocated", startup),
        (b"replication.backlog", 0),
        (b"clients.slaves", 0),
        (b"clients.normal", server.client_memory.recount()),
        (b"cluster.links", 0),
        (b"aof.buffer", 0),
        (b"lua.caches", 0),
        (b"functions.caches", 0),
    ]
    for keyspace in server.engine.context.databases:
        if keyspace.values:
            tables = [
                (b"overhead.hashtable.main", keyspace.values.memory_bytes()),
                (b"overhead.hashtable.expires", keyspace.expires.memory_bytes()),
            ]
            pairs.append((b"db.%d" % keyspace.index, Pairs(tables)))
    pairs += [
        (b"overhead.total", used - dataset),
        (b"keys.count", keys),
        (b"keys.bytes-per-key", dataset // keys if keys else 0),
        (b"dataset.bytes", dataset),
        (b"dataset.percentage", Double(100 * dataset / used)),
        (b"peak.percentage", Double(100 * used / peak)),
        (b"fragmentation", Double(1.0)),
        (b"fragmentation.bytes", 0),
    ]
    return Pairs(pairs)


def doctor(session: Session, frame: Frame) -> Verbatim:
    """A report about the memory, for people."""
    limit = session.server.max_memory
    used = process.resident_bytes()
    peak = process.peak_bytes()
    found = []
    if limit and used > _NEARLY_FULL * limit:
        found.append(
            f"The process uses {human(used)} of maxmemory {human(limit)}: trim streams, or raise maxmemory."
        )
    if peak > 1.5 * used and peak - used > _LITTLE_BYTES:
        found.append(
            f"The process uses {human(used)}; its peak was {human(peak)}. The difference was freed."
        )
    if not found:
        found.append(f"No memory problems: the process uses {human(used)}.")
    return Verbatim("".join(line + "\n" for line in found).encode())


def purge(session: Session, frame: Frame) -> Status:
    """Run the garbage collector; Python returns free pages to the system as usual."""
    gc.collect()
    return OK


def malloc_stats(session: Session, frame: Frame) -> Verbatim:
    """The statistics of Python's allocator."""
    blocks = f"blocks allocated: {sys.getallocatedblocks()}"
    tracked = ", ".join(str(count) for count in gc.get_count())
    resident = f"resident bytes: {process.resident_bytes()}"
    return Verbatim(
        f"{blocks}\nobjects since the last collections: {tracked}\n{resident}\n".encode()
    )


def memory_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of MEMORY."""
    return help_of("MEMORY", _HELP)


_HELP = [
    "DOCTOR",
    "    Report memory problems.",
    "MALLOC-STATS",
    "    Return statistics of the allocator.",
    "PURGE",
    "    Free unused memory.",
    "STATS",
    "    Return how memory is used.",
    "USAGE <key> [SAMPLES <count>]",
    "    Estimate the memory of a key and its value from <count> samples (default 5, 0 for all).",
]


def _row(name: str, run: Any, summary: str, flags: Flags = _NO_FLAGS) -> Command:
    return Command(
        name,
        run,
        2,
        flags,
        NO_KEYS,
        summary,
        since="4.0.0",
        group="server",
        in_session=True,
    )


COMMANDS = (
    _row("MEMORY DOCTOR", doctor, "Say what is wrong with the memory."),
    _row(
        "MEMORY HELP",
        memory_help,
        "Show the subcommands of MEMORY.",
        Flags.LOADING | Flags.STALE,
    ),
    _row("MEMORY MALLOC-STATS", malloc_stats, "Show what the allocator tells of itself."),
    _row("MEMORY PURGE", purge, "Free what can be freed."),
    _row("MEMORY STATS", stats, "Show what memory is used for."),
    Command(
        "MEMORY USAGE",
        usage,
        -3,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Estimate the memory of a key and its value.",
        syntax="key [SAMPLES count]",
        since="4.0.0",
        complexity="O(samples)",
        group="server",
        in_session=True,
        access=("RO",),
    ),
)
