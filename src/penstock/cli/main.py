"""The `penstock` command: what belongs to no subcommand."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock._version import VERSION
from penstock.build import KIND

app = typer.Typer(add_completion=False)


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
    """A message queue with the data model of Redis Streams."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    app(prog_name="penstock")
