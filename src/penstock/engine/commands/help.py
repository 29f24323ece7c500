"""The replies to HELP: a header, the lines of the subcommands, and HELP itself.

The lines that show syntax are Redis's, because people grep them; the indented lines below them are ours.
"""

from __future__ import annotations

from penstock.reply import Status


def help_of(container: str, lines: list[str]) -> list[Status]:
    """The reply to `CONTAINER HELP`."""
    header = f"{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    return [Status(line) for line in (header, *lines, "HELP", "    Show these lines.")]
