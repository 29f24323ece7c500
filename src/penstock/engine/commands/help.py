"""What the HELP of a container says: a header, the lines of its subcommands, and HELP itself.

The lines that show words are those of Redis, for people grep them; what stands indented below is ours.
"""

from __future__ import annotations

from penstock.reply import Status


def help_of(container: str, lines: list[str]) -> list[Status]:
    """The reply to `CONTAINER HELP`."""
    header = f"{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    return [Status(line) for line in (header, *lines, "HELP", "    Show these lines.")]
