"""Writes docs/configuration.md out of the table of directives; with --check, fails if that would change it.

python tools/configuration_docs.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.server.config.directives import SECTIONS, VOCABULARY
from penstock.server.config.settings import Directive

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

Made by `make docs` out of src/penstock/server/config/directives.py: do not edit.

    penstock serve [FILE] [--DIRECTIVE VALUE ...]

FILE has the syntax of redis.conf: a directive and its values on a line, `#` for comments, quotes as in
redis-cli, `include PATH` (a glob, from the working directory). The command line has the same directives with
two dashes and wins over the file; of two lines the later wins, but lines of `save` add up and
`client-output-buffer-limit` leaves the classes alone that it does not name. A value that cannot be used is an
error that names the file and the line, and the server does not start.

While the server runs, `CONFIG GET` shows directives, `CONFIG SET` changes those marked *any time* (all of one
command or none), and `CONFIG REWRITE` brings FILE up to date; comments and order stay. *protected* directives
change at run time only with `enable-protected-configs`.

Names, defaults and refusals are those of Redis 7, with these exceptions. Other defaults: `appendonly yes`,
`appendfsync always`, no points of `save`, `dir penstock-data`, `bind` to the loopback; a normal client may
leave a gigabyte unread, not anything. `port` and `bind` are set at start. `maxmemory` limits what the
system says that the process occupies. Of `maxmemory-policy` only `noeviction` is taken.

The server runs until SIGTERM, Ctrl-C or SHUTDOWN; its exit status is 0 then. With a log, or with save
points, everything is on disk by then. With neither (`appendonly no` and no `save`), the data is gone. A
second Ctrl-C ends the server at once (130). Status 1: a setting was refused, or the server could not start
or go on; the last line of the log, on stderr, says why.

[SECURITY.md](SECURITY.md) says who can read the data, and what protects the port and what does not.
"""

FOREIGN = """\
## Accepted, without a meaning here

The server says so in a warning, so that a redis.conf can be used as it is:

{ignored}

## Refused

Not to start is better than to start without what these ask for, unless their value asks for nothing:

| directive | why |
| --- | --- |
{refused}
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, rows in SECTIONS.items():
        parts.append(
            f"## {title}\n\n| directive | default | values | set | |\n| --- | --- | --- | --- | --- |"
        )
        parts.append("\n".join(_line(row) for row in rows) + "\n")
    ignored = ", ".join(f"`{name}`" for name in sorted(VOCABULARY.ignored))
    refused = "\n".join(f"| `{name}` | {why} |" for name, (_, why) in VOCABULARY.refused.items())
    parts.append(FOREIGN.format(ignored=ignored, refused=refused))
    return "\n".join(parts)


def _line(row: Directive) -> str:
    default = row.kind.show(row.default)
    names = ", ".join(f"`{name}`" for name in (row.name, *row.also))
    shown = f"`{default}`" if default else ""
    allowed = row.kind.allowed.replace("|", "\\|")
    return f"| {names} | {shown} | {allowed} | {row.when} | {row.meaning} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is stale")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if not PAGE.exists() or PAGE.read_text() != page():
        print("docs/configuration.md is not what the table says: run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
