"""One measurement of benchmarks/pipeline.py, in a process of its own: it can have only one session of Spark.

    python benchmarks/_pipeline_work.py JSON

The JSON names the function and its arguments. The last line of the output is the result as JSON. Only the
public names of penstock.spark are used, so the Python of another build can run it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import redis
from _memory import Peaks
from _spark_work import STREAM

from penstock.spark import build_session, load_pipeline, run_pipeline

TEXT = f"""[source]
url = "redis://127.0.0.1:PORT"
stream = "{STREAM}"
[schema]
sku = "string"
qty = "int"
price = "decimal(10,2)"
ok = "boolean"
at = "timestamp"
[valid]
positive = "qty > 0"
[archive]
path = "lake"
[reject]
stream = "bench:rejected"
[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "1 minute"
group_by = ["ok"]
measures = {{ orders = "count(*)", revenue = "sum(qty * price)" }}
"""
RAW = "_id string, _timestamp timestamp, sku string, qty string, price string, ok string, at string"
TYPED = (
    "_id",
    "_timestamp",
    "sku",
    "cast(qty as int) qty",
    "cast(price as decimal(10,2)) price",
    "cast(ok as boolean) ok",
    "cast(at as timestamp) at",
)
WINDOWS = """select window(_timestamp, '1 minute').start as start, ok, count(*) orders,
sum(qty * price) revenue, to_date(max(_timestamp)) day from bench_typed
group by window(_timestamp, '1 minute'), ok"""
PIPELINE, BATCH, CACHED = "pipeline", "batch", "batch, cached"
SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.executor.memory": "512m"}
LOOK_SECONDS = 0.01
WARM_SECONDS = 15
WATCH_SECONDS_MAX = 300
PAGE_ENTRIES = 10_000
Spent = dict[str, float]
Id = tuple[int, int]
Way = Callable[[Path], Spent]


def by_pipeline(spark: Any, port: int) -> Way:
    """Run the pipeline into a new lake."""

    def run(folder: Path) -> Spent:
        with redis.Redis(port=port) as client:
            client.delete("bench:rejected")
        records: list[Any] = []
        began = time.perf_counter()
        run_pipeline(definition(folder, port), spark, once=True, watch=records.append)
        spent = {"whole": time.perf_counter() - began}
        for query, output in (("main", "bronze"), ("aggregate", "minute")):
            spent[query] = sum(one.seconds for one in records if one.output == output)
        return spent

    return run


def definition(folder: Path, port: int) -> Any:
    """The pipeline, with its lake in a folder."""
    file = folder / "bench.toml"
    file.write_text(TEXT.replace("PORT", str(port)))
    return load_pipeline(file)


def by_batch(spark: Any, source: Path, is_cached: bool) -> Way:
    """Make the same tables from Parquet with ordinary Spark code."""

    def run(folder: Path) -> Spent:
        began = time.perf_counter()
        raw = spark.read.schema(RAW).parquet(str(source))
        if is_cached:
            raw = raw.persist()
        day = "to_date(_timestamp) day"
        tables = {"bronze": raw.selectExpr("*", day)}
        typed = raw.selectExpr(*TYPED)
        tables["silver"] = typed.where("qty > 0").selectExpr("*", day)
        tables["rejected"] = typed.where("not coalesce(qty > 0, false)").selectExpr("*", day)
        typed.where("qty > 0").createOrReplaceTempView("bench_typed")
        tables["minute"] = spark.sql(WINDOWS)
        for name, table in tables.items():
            table.write.partitionBy("day").parquet(str(folder / name))
        if is_cached:
            raw.unpersist()
        return {"whole": time.perf_counter() - began}

    return run


def throughput(port: int, master: str, rounds: int, only: str = "") -> dict[str, list[Spent]]:
    """The seconds of each round of each way, after one round to warm up. The ways take turns."""
    spent: dict[str, list[Spent]] = {}
    spark = build_session("bench", master, "OFF", SETTINGS)
    with tempfile.TemporaryDirectory() as place:
        ways = {PIPELINE: by_pipeline(spark, port)}
        if not only:
            raw = Path(place, "raw")
            reader = spark.read.format("penstock").options(url=f"redis://127.0.0.1:{port}")
            reader.option("stream", STREAM).schema(RAW).load().write.parquet(str(raw))
            ways[BATCH] = by_batch(spark, raw, is_cached=False)
            ways[CACHED] = by_batch(spark, raw, is_cached=True)
        for number in range(rounds + 1):
            for name, way in ways.items():
                folder = Path(place, "made")
                folder.mkdir()
                found = way(folder)
                shutil.rmtree(folder)
                if number:
                    spent.setdefault(name, []).append(found)
    spark.stop()
    return spent


def backlog(port: int, master: str) -> dict[str, float]:
    """The seconds of one run of the pipeline, and the largest memory of its processes in MB."""
    spark = build_session("bench", master, "OFF", SETTINGS)
    with tempfile.TemporaryDirectory() as place, Peaks() as peaks:
        spent = by_pipeline(spark, port)(Path(place))
    spark.stop()
    return {"seconds": spent["whole"], **peaks.megabytes}


def latency(port: int, master: str, rate: int, seconds: int) -> list[float]:
    """The ms from XADD to the commit of silver, for entries sent during `seconds`, after some to warm up."""
    spark = build_session("bench", master, "OFF", SETTINGS)
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory() as place,
        redis.Redis(port=port) as client,
        ThreadPoolExecutor(1) as beside,
    ):
        commits = Commits(Path(place, "lake/silver/_manifest"))
        script = str(Path(__file__).with_name("_pipeline_feed.py"))
        words = [sys.executable, script, *map(str, (port, rate, WARM_SECONDS + seconds))]

        def feed() -> None:
            try:
                commits.watch(
                    lambda: bool(commits.seen)
                )  # the first entry: the queries have started
                with subprocess.Popen(words) as feeder:
                    try:
                        commits.watch(lambda: feeder.poll() is not None)
                    finally:
                        feeder.kill()
                last = parsed(client.xinfo_stream(STREAM)["last-generated-id"].decode())
                commits.watch(lambda: commits.seen[-1][0] >= last)
            finally:
                stop.set()

        client.xadd(STREAM, {"sku": "A1", "qty": 1})
        feeding = beside.submit(feed)
        run_pipeline(definition(Path(place), port), spark, stop=stop)
        feeding.result()
        ids = ids_of(client)[1:]
    spark.stop()
    begin_ms = ids[0][0] + 1000 * WARM_SECONDS
    return delays([one for one in ids if one[0] >= begin_ms], commits.seen)


def delays(ids: list[Id], commits: list[tuple[Id, float]]) -> list[float]:
    """The ms between each entry and the commit that has it."""
    found = []
    left = iter(commits)
    end, at_ms = next(left)
    for one in ids:
        while end < one:
            end, at_ms = next(left)
        found.append(at_ms - one[0])
    return found


def ids_of(client: redis.Redis) -> list[Id]:
    """All ids of the stream."""
    found: list[Id] = []
    start = "-"
    while page := client.xrange(STREAM, start, "+", count=PAGE_ENTRIES):
        texts = [cast(bytes, entry_id).decode() for entry_id, _ in page]
        found += map(parsed, texts)
        start = f"({texts[-1]}"
    return found


class Commits:
    """Watches the manifests of a table: `seen` has the position of each, and when it was there."""

    def __init__(self, folder: Path) -> None:
        self.seen: list[tuple[Id, float]] = []
        self._folder = folder
        self._known: set[Path] = set()

    def watch(self, until: Callable[[], bool]) -> None:
        """Watch until something is true."""
        limit = time.monotonic() + WATCH_SECONDS_MAX
        while not until():
            if time.monotonic() > limit:
                raise TimeoutError("the pipeline commits nothing")
            time.sleep(LOOK_SECONDS)
            if self._folder.is_dir():
                self._look(time.time() * 1000)

    def _look(self, now_ms: float) -> None:
        new = set(self._folder.glob("[0-9]*.json")) - self._known
        for path in sorted(new):
            self._known.add(path)
            position = json.loads(path.read_text())["position"][STREAM]
            self.seen.append((parsed(position), now_ms))


def parsed(entry_id: str) -> Id:
    ms, _, seq = entry_id.partition("-")
    return int(ms), int(seq)


def main() -> None:
    given = json.loads(sys.argv[1])
    acts: dict[str, Callable[..., object]] = {
        "throughput": throughput,
        "latency": latency,
        "backlog": backlog,
    }
    act = acts[given.pop("measure")]
    print(json.dumps(act(**given)))


if __name__ == "__main__":
    main()
