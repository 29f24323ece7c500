"""`penstock serve`: a server in the foreground."""

from __future__ import annotations

from typing import Annotated

import typer

EPILOG = """\b
Directives you may need first (docs/configuration.md has all of them):
  --port 7000              the port; 0 to listen on a Unix socket only
  --bind 0.0.0.0           the addresses to listen on
  --requirepass secret     the password of clients
  --dir /var/lib/penstock  the data directory
  --appendfsync everysec   fsync once a second instead of before every reply
  --appendonly no          keep the data in memory only
  --maxmemory 2gb          the memory limit

\b
Examples:
  penstock serve
  penstock serve --port 7000 --dir /var/lib/penstock
  penstock serve penstock.conf --port 7000
  penstock serve --bind 127.0.0.1 ::1 --requirepass secret
  penstock serve --port 0 --unixsocket /run/penstock.sock --unixsocketperm 770
  penstock serve --client-output-buffer-limit "pubsub 32mb 8mb 60" --save ""

\b
Exit codes:
  0    stopped by a signal or by SHUTDOWN
  1    a directive is wrong, the server cannot start, or it had to stop
  2    the command line is wrong"""

SERVE_SETTINGS = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": ["--help", "-h"],
}


def serve(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [--DIRECTIVE VALUE ...]",
            show_default=False,
            help="A configuration file like redis.conf, then directives, which override the file.",
        ),
    ] = None,
) -> None:
    """Run a server in the foreground until SIGTERM or Ctrl-C. Any Redis client can connect to it.

    Without arguments it listens on 127.0.0.1:6379 and keeps its data durably in ./penstock-data.

    Settings are the directives of redis.conf. On the command line, write the name of a directive after `--`,
    then its value: `port 7000` in a file is `--port 7000` here. A directive may take several values
    (`--bind 127.0.0.1 ::1`). Quote a value that contains blanks, and write "" for an empty one. A directive
    on the command line overrides the same directive in FILE.
    """
    # Imported here because no other subcommand needs a server.
    from penstock.cli.server_start import serve as run_server

    raise typer.Exit(run_server(words or ()))
