"""`penstock serve`: a server in the foreground."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.errors import ConfigError
from penstock.human.show import harmless

SERVE_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def serve(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [--DIRECTIVE VALUE ...]",
            show_default=False,
            help="A file in redis.conf's syntax, then directives, which win over the file.",
        ),
    ] = None,
) -> None:
    """Run a server until SIGTERM or ctrl-C. Every client of Redis can talk to it.

    \b
    penstock serve                                 on 127.0.0.1:6379, durable, in ./penstock-data
    penstock serve penstock.conf --port 7000       a file; the command line wins
    penstock serve --dir /var/lib/penstock --appendfsync everysec
    penstock serve --appendonly no --save ""       in memory only
    penstock serve --bind 127.0.0.1 ::1 --requirepass secret
    penstock serve --port 0 --unixsocket /run/penstock.sock --unixsocketperm 770
    penstock serve --client-output-buffer-limit "pubsub 32mb 8mb 60" --save ""

    Directives have the names of redis.conf: docs/configuration.md lists them.

    Exit codes: 0 ended by a signal or by SHUTDOWN; 1 a setting was refused, the server could not start, or it
    had to stop; 2 the command line makes no sense.
    """
    # Here, for no other subcommand needs a server.
    from penstock.server import app
    from penstock.server.config import directives
    from penstock.server.config import file as config_file

    rest = list(words or ())
    file = rest.pop(0) if rest and not rest[0].startswith("--") else None
    if rest and not rest[0].startswith("--"):
        raise typer.BadParameter(f"{rest[0]}: expected --DIRECTIVE VALUE")
    config = directives.default_config()
    try:
        if file is not None:
            config.load(config_file.read_file(file))
            config.file = file
        config.load(config_file.read_command_line(rest))
        in_order = app.run(config)
    except ConfigError as error:
        typer.echo(f"penstock serve: {harmless(str(error))}", err=True)
        raise typer.Exit(1) from error
    if not in_order:
        raise typer.Exit(1)
