"""`penstock worker`: runs the handlers of an App."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from penstock.cli.connect import MetricsBind
from penstock.cli.terminal.outcome import BadFile, Failure, Unreachable, example
from penstock.errors import ConnectionLost, PenstockError
from penstock.metrics.listener import BIND_DEFAULT

EPILOG = example(
    "penstock worker shop:app                        one process, until SIGTERM or Ctrl-C",
    "penstock worker shop:app --processes 4 --concurrency 100",
    "penstock worker shop:app --reload               restart when a .py file changes",
    "penstock worker shop:app --drain 60 --metrics 9100",
)


def worker(
    app: Annotated[str, typer.Argument(metavar="MODULE:APP")],
    processes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes, restarted when they die.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=1000, metavar="N", help="Attempts at a time of each handler."),
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Restart on changes of code.")] = False,
    drain: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long a stop waits for attempts.")
    ] = 30,
    metrics: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="PORT",
            help="Serve /metrics for Prometheus, /healthz and /readyz; process N uses PORT + N - 1.",
        ),
    ] = None,
    metrics_bind: MetricsBind = BIND_DEFAULT,
) -> None:
    """Run the handlers of an App until SIGTERM or Ctrl-C.

    MODULE is imported from the current directory or from the installed packages; APP is a name in it. The
    first signal stops taking entries and waits for those that run; what is not finished in time is given back
    to the group. A second signal gives it back at once.
    """
    # Imported here because no other subcommand needs the worker library.
    try:
        from penstock.work.running import processes as supervisor
    except ImportError as error:
        raise Failure(f"{error}: pip install 'penstock[work]'") from None

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    try:
        found = supervisor.load(app)
        options = supervisor.Options(app, processes or 1, concurrency, drain, metrics, metrics_bind)
        if processes is None and not reload:
            finished = supervisor.run_one(found, options)
        else:
            finished = supervisor.run_many(found, options, reload)
    except supervisor.NoApp as error:
        raise BadFile(str(error)) from None
    except ConnectionLost as error:
        raise Unreachable(str(error)) from None
    except PenstockError as error:
        raise Failure(str(error)) from None
    if not finished:
        raise Failure("some attempts did not finish in time; they were given back")
