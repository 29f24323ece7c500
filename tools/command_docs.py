"""Writes docs/commands.md out of the command table; with --check, fails if that would change it.

python tools/command_docs.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from penstock.engine.table import Command, Flags
from penstock.server.command_table import ROWS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "commands.md"

HEAD = """# Commands

Made by `make docs` out of the command table: do not edit. What differs from Redis is in
[compatibility.md](compatibility.md); what only penstock has, with examples, in
[extensions.md](extensions.md).
"""

# In the order in which the page has them; a group that is not named here comes last, under its own name.
TITLES = {
    "stream": "Streams",
    "penstock": "Extensions",
    "generic": "Keys",
    "string": "Strings",
    "list": "Lists",
    "pubsub": "Channels",
    "transactions": "Transactions",
    "connection": "Connections",
    "server": "Server",
}

WORDS = {
    Flags.WRITE: "writes",
    Flags.READ: "reads",
    Flags.FAST: "fast",
    Flags.BLOCKING: "may wait",
    Flags.DENY_OOM: "refused when memory is short",
    Flags.ADMIN: "for administrators",
    Flags.PUBSUB: "about channels",
    Flags.NO_AUTH: "needs no login",
    Flags.NO_MULTI: "not in a transaction",
    Flags.NO_SCRIPT: "not in a script",
    Flags.LOADING: "works while data is loaded",
    Flags.STALE: "works on stale data",
    Flags.SKIP_MONITOR: "not shown to MONITOR",
    Flags.SKIP_SLOWLOG: "not in the slow log",
    Flags.DANGEROUS: "dangerous",
}


def all_rows() -> list[Command]:
    """Every row that the page shows."""
    return list(ROWS)


def page(rows: Iterable[Command]) -> str:
    """The text of docs/commands.md."""
    order = list(TITLES)
    order += sorted({row.group for row in rows} - TITLES.keys())
    by_place = sorted(rows, key=lambda row: (order.index(row.group), row.name))
    sections = [HEAD]
    for group, found in groupby(by_place, key=lambda row: row.group):
        sections.append(f"## {TITLES.get(group, group.capitalize())}\n")
        sections += [described(row) for row in found]
    return "\n".join(sections)


def described(row: Command) -> str:
    """What the page says of one command."""
    words = [text for flag, text in WORDS.items() if row.flags & flag]
    usage = f"{row.name} {row.syntax}".rstrip()
    flags = f" *Flags:* {', '.join(words)}." if words else ""
    about = f"*Since* {row.since}. *Cost:* {row.complexity}.{flags}"
    return f"### {row.name}\n\n    {usage}\n\n{row.summary}\n\n{about}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is stale")
    if not parser.parse_args().check:
        PAGE.write_text(page(all_rows()))
        return 0
    if not PAGE.exists() or PAGE.read_text() != page(all_rows()):
        print("docs/commands.md is not what the command table says: run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
