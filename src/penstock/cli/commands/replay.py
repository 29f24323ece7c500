"""`penstock replay`: appends entries of a stream or a lake to a stream again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import redis
import typer
from rich.console import Console

from penstock.cli.connect import URL_DEFAULT, Json, ServerConnection, Url
from penstock.cli.spark_session import need_spark, quiet_session
from penstock.cli.terminal.moment import Ago, Edge, parse_moment
from penstock.cli.terminal.outcome import Failure, Unreachable, example, say
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import PenstockError
from penstock.human.show import harmless, json_line
from penstock.spark.lake.local_files import is_local, local_path

if TYPE_CHECKING:
    from penstock.spark.replay import Replay

Login = dict[str, str]

EPILOG = example(
    "penstock replay --from-stream orders:rejected --to orders",
    "penstock replay --from-stream orders --since 2026-11-16T09:00 --until 2026-11-16T10:00 --to again",
    "penstock replay --from-lake lake/bronze --since 1h --to orders:copy",
    "penstock replay --from-lake lake/bronze --to orders --to-url redis://other:6379",
    "penstock replay --from-stream a --to b --cluster --url redis://node1:7000",
)


def replay(
    to: Annotated[str, typer.Option(metavar="STREAM", help="The stream to append to.")],
    from_stream: Annotated[
        str | None, typer.Option(metavar="STREAM", help="Replay this stream.")
    ] = None,
    from_lake: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Replay this table of a lake: Parquet, Delta or Iceberg."
        ),
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Where to start: an id, a time, or 10m for ago.")
    ] = "start",
    until: Annotated[
        str, typer.Option(metavar="TIME", help="Stop before this time. Same forms as --since.")
    ] = "end",
    url: Url = URL_DEFAULT,
    to_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Server of --to, if it is not --url.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of this replay. A replay continues by its name.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Replay everything again, from the start.")
    ] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="The servers are nodes of a Redis Cluster.")
    ] = False,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master. The default is this machine.")
    ] = None,
    json: Json = False,
) -> None:
    """Append entries of a stream or a lake to a stream again.

    The source may also be a dead-letter stream. Entries keep their order and get new ids. The fields
    _source_stream and _source_id tell where they were first. Either all entries of a run appear at once, or
    none. Run the same command again to continue: it completes a run that crashed, and otherwise appends
    what has been added since the last run.
    """
    if (from_stream is None) == (from_lake is None):
        raise typer.BadParameter("give either --from-stream or --from-lake")
    if not to:
        raise typer.BadParameter("--to is empty: name a stream")
    if from_lake is not None and is_local(from_lake) and not local_path(from_lake).is_dir():
        raise typer.BadParameter(f"{from_lake} is not a directory")
    target_url = to_url or url
    if from_stream == to and target_url == url:
        raise typer.BadParameter("--from-stream and --to are the same stream")
    with ServerConnection(url) as server:
        first, last = _bounds(since, until, server.now_ms)
    need_spark()
    from penstock.spark.replay import Replay, default_name

    wanted = Replay(from_stream, from_lake, to, first, last)
    name = name or default_name(wanted, since, until)
    shared = {"cluster": "true"} if cluster else {}
    places = ({"url": url, **shared}, {"url": target_url, **shared})
    _check_origin(wanted, places[0])
    if again:
        _forget(wanted, name, places[1])
    rows = _replayed(wanted, name, places, master)
    if rows is None:
        say(f"nothing new since the last run of {name}; use --again to replay everything again")
    if json:
        typer.echo(json_line({"replay": name, "to": to, "rows": rows or 0}))
    else:
        typer.echo(f"{rows or 0:,} entries appended to {to}; this replay is named {name}")


def _replayed(
    wanted: Replay, name: str, places: tuple[Login, Login], master: str | None
) -> int | None:
    """Write the next part; return its number of entries, or None if there is nothing new.

    Spark is started only if there is something to replay, or to look into a lake.
    """
    from penstock.spark.replay import frame_of, next_part, write_part

    origin, target = places
    part = None
    if wanted.stream is not None:
        with _as_failures():
            part = next_part(wanted, name, origin, target)
        if part is None:
            return None
    console = Console(stderr=True)
    with console.status("starting Spark"), quiet_session("replay", master, {}) as spark:
        if part is None:
            part = next_part(wanted, name, origin, target, spark)
        if part is None:
            return None
        console.print(f"replaying into {harmless(wanted.target)}", highlight=False, markup=False)
        return write_part(frame_of(spark, wanted, part, origin), wanted, name, part, target)


def _forget(wanted: Replay, name: str, target: Login) -> None:
    from penstock.spark.replay import parts_of

    with _as_failures(), parts_of(target, wanted, name) as parts:
        parts.forget()


def _check_origin(wanted: Replay, origin: Login) -> None:
    """Raises: Failure if there is no such stream, before Spark is started."""
    from penstock.spark.replay import kind_of

    if wanted.stream is not None:
        with _as_failures():
            kind = kind_of(origin, wanted.stream)
        if kind != "stream":
            what = "no such key" if kind == "none" else f"holds a {kind}, not a stream"
            raise Failure(f"{wanted.stream}: {what}")


@contextmanager
def _as_failures() -> Iterator[None]:
    """Turn errors of a server or a connection into failures of the command."""
    try:
        yield
    except redis.ConnectionError as error:
        raise Unreachable(str(error)) from None
    except (PenstockError, redis.RedisError) as error:
        raise Failure(str(error)) from None


def _bounds(since: str, until: str, now_ms: Callable[[], int]) -> tuple[StreamID, StreamID]:
    first, end = _id_of(since, now_ms), _id_of(until, now_ms)
    if end <= first or since == Edge.END.value:
        raise typer.BadParameter("--until must be later than --since")
    return first, end if until == Edge.END.value else end.previous()


def _id_of(text: str, now_ms: Callable[[], int]) -> StreamID:
    moment = parse_moment(text)
    if isinstance(moment, Ago):
        return moment.at(now_ms())
    if isinstance(moment, Edge):
        return SMALLEST if moment is Edge.START else LARGEST
    return moment
