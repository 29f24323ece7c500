"""The `penstock` command: its subcommands and the options it has itself."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock._version import VERSION
from penstock.build import KIND
from penstock.cli.commands import (
    add,
    archive,
    check,
    dead,
    demo,
    groups,
    info,
    inspect,
    pending,
    pipeline,
    replay,
    retention,
    serve,
    tail,
    ui,
    worker,
)
from penstock.cli.operate import backup, doctor, pipeline_control
from penstock.cli.terminal.outcome import EXIT_CODES, Program

# No rich markup: help and errors may quote data, and must not draw boxes into a pipe.
app = typer.Typer(
    add_completion=False,
    cls=Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=EXIT_CODES,
)

app.command(epilog=serve.EPILOG, context_settings=serve.SERVE_SETTINGS)(serve.serve)
app.command(epilog=add.EPILOG)(add.add)
app.command(epilog=tail.EPILOG)(tail.tail)
app.command(epilog=groups.EPILOG)(groups.groups)
app.command(epilog=pending.EPILOG)(pending.pending)
app.command(epilog=info.EPILOG)(info.info)
app.command(epilog=inspect.EPILOG)(inspect.inspect)
app.command(epilog=check.EPILOG)(check.check)
app.command(epilog=backup.BACKUP_EPILOG)(backup.backup)
app.command(epilog=backup.RESTORE_EPILOG)(backup.restore)
app.command(epilog=doctor.EPILOG)(doctor.doctor)
app.add_typer(archive.archive, name="archive")
pipeline.app.command(epilog=pipeline_control.STATUS_EPILOG)(pipeline_control.status)
pipeline.app.command(epilog=pipeline_control.STOP_EPILOG)(pipeline_control.stop)
pipeline.app.command(epilog=pipeline_control.RESET_EPILOG)(pipeline_control.reset)
app.add_typer(pipeline.app, name="pipeline")
app.command(epilog=worker.EPILOG)(worker.worker)
app.command(epilog=dead.EPILOG)(dead.dead)
app.command(epilog=retention.EPILOG)(retention.retention)
app.command(epilog=replay.EPILOG)(replay.replay)
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=ui.EPILOG)(ui.ui)


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
    """A durable message queue with the data model of Redis Streams.

    `penstock serve` runs a server. The other commands are clients. They work with penstock, Redis, Valkey and
    any other server that speaks Redis's protocol. Set the server with --url or with the environment variable
    PENSTOCK_URL; the default is redis://127.0.0.1:6379/0.

    \b
    Examples:
      penstock serve                       a server on port 6379, data in ./penstock-data
      penstock add orders sku=A1 qty=2     add an entry to the stream orders
      penstock tail orders                 show entries as they are added
      penstock info                        the server and its streams
      penstock ui                          a dashboard in the browser

    `penstock COMMAND --help` explains a command and shows examples.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
