"""The `penstock` command: what belongs to no subcommand, and the list of those there are."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from penstock._version import VERSION
from penstock.build import KIND
from penstock.cli.commands import (
    add,
    archive,
    check,
    demo,
    groups,
    info,
    inspect,
    pending,
    pipeline,
    replay,
    serve,
    tail,
    ui,
)
from penstock.cli.terminal.outcome import EXIT_CODES, Program

# Without rich's markup in help and errors: they may quote data, and draw no boxes into a pipe.
app = typer.Typer(
    add_completion=False,
    cls=Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=EXIT_CODES,
)

app.command(epilog=add.EPILOG)(add.add)
app.command(epilog=tail.EPILOG)(tail.tail)
app.command(epilog=groups.EPILOG)(groups.groups)
app.command(epilog=pending.EPILOG)(pending.pending)
app.command(epilog=info.EPILOG)(info.info)
app.command(epilog=inspect.EPILOG)(inspect.inspect)
app.command(epilog=check.EPILOG)(check.check)
app.add_typer(archive.archive, name="archive")
app.add_typer(pipeline.app, name="pipeline")
app.command(epilog=replay.EPILOG)(replay.replay)
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=ui.EPILOG)(ui.ui)
app.command(context_settings=serve.SERVE_SETTINGS)(serve.serve)


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {VERSION} ({KIND})")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def penstock(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=print_version,
            is_eager=True,
            help="Print the version and the kind of build: compiled or interpreted.",
        ),
    ] = False,
) -> None:
    """A message queue with the data model of Redis Streams.

    The commands work with any server that speaks Redis's protocol. Name it with --url, or once and for all in
    PENSTOCK_URL.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    # Python has no stdin and no stdout where the shell closed them (`<&- >&-`).
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character gets its number, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="penstock")
