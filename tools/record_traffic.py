"""Records the commands that real clients send, by MONITOR, into tests/fixtures/traffic/clients.monitor.

    python tools/record_traffic.py

A penstock server runs while redis-py, redis-cli, penstock's command line, its bulk reader and its Spark sink
work with it. tests/server/test_recorded_traffic.py plays the recording.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.client.bulk import BulkOptions, BulkReader

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import PenstockServer, running_penstock  # noqa: E402

RECORDING = ROOT / "tests/fixtures/traffic/clients.monitor"
LAST = "the recording ends here"
ORDERS = 150
SPARK_SINK = """
from penstock.spark.runtime.session import build_session
import sys
spark = build_session(master="local[2]")
rows = spark.range(600).selectExpr("id AS order", "concat('sku-', id % 7) AS sku", "id * 1.5 AS price")
sink = rows.repartition(3).write.format("penstock").mode("append")
sink.option("url", sys.argv[1]).option("stream", "sales").save()
spark.read.format("penstock").option("url", sys.argv[1]).option("stream", "orders").load().count()
spark.stop()
"""


@contextmanager
def recording(server: PenstockServer) -> Iterator[list[str]]:
    """The lines of MONITOR, complete at the end of the block."""
    lines: list[str] = []
    client: Any = server.client(socket_timeout=None)
    monitor = client.monitor()
    with monitor:

        def listen() -> None:
            while not lines or LAST not in lines[-1]:
                lines.append(monitor.connection.read_response().decode("latin-1"))

        listener = threading.Thread(target=listen)
        listener.start()
        yield lines
        server.client().echo(LAST)
        listener.join()


def produce(client: Any) -> None:
    """What producers send: one entry at a time, with a limit, in pipelines, in transactions."""
    for number in range(ORDERS):
        order: dict[Any, Any] = {
            "sku": f"A{number % 50}",
            "qty": number % 9,
            "price": number * 0.25,
        }
        client.xadd("orders", order)
        if number % 2:
            client.xadd("clicks", {"page": f"/p/{number}", "ms": number * 37}, maxlen=100)
        if number % 40 == 0:
            client.set(f"session:{number}", "open", ex=60)
            for transaction in (False, number % 200 == 0):
                pipeline = client.pipeline(transaction=transaction)
                for at in range(20):
                    pipeline.xadd("readings", {"sensor": at, "celsius": number - at})
                pipeline.execute()


def work(client: Any, consumer: str, count: int) -> None:
    """What a worker sends until nothing is left: read, acknowledge, take over, look around."""
    while found := client.xreadgroup("workers", consumer, {"orders": ">"}, count=count, block=50):
        entries = found[b"orders"][0] if isinstance(found, dict) else found[0][1]
        ids = [entry_id for entry_id, _ in entries]
        client.xack("orders", "workers", *ids)
    client.xautoclaim("orders", "workers", consumer, 30_000)
    client.xpending("orders", "workers")
    client.xlen("orders")


def follow(client: Any) -> None:
    """What readers without a group send."""
    after = b"0-0"
    while found := client.xread({"readings": after, "clicks": "$"}, count=25):
        after = found[0][1][-1][0]
    start = "-"
    while page := client.xrange("orders", start, "+", count=50):
        start = "(" + page[-1][0].decode()
    client.xrevrange("orders", count=1)


def run_redis_py(server: PenstockServer) -> None:
    client = server.client(protocol=2)
    client.xgroup_create("orders", "workers", id="0", mkstream=True)
    produce(client)
    for consumer, count in (("ann", 10), ("bob", 1)):
        work(server.client(protocol=2), consumer, count)
        produce(client)
    work(server.client(protocol=3), "eve", 100)
    follow(client)


def run_redis_cli(server: PenstockServer) -> None:
    commands = ["XADD orders * sku B1 qty 2", "XLEN orders", "XRANGE orders - + COUNT 3"]
    commands += ["XREAD COUNT 2 STREAMS orders 0", "XREADGROUP GROUP workers cli STREAMS orders >"]
    commands += ["XPENDING orders workers", "XINFO STREAM orders", "XACK orders workers 1-1"]
    text = "\n".join(commands * 3)
    port = str(server.port)
    subprocess.run(
        ["redis-cli", "-p", port], input=text, text=True, check=True, capture_output=True
    )


def run_command_line(server: PenstockServer) -> None:
    url = f"redis://127.0.0.1:{server.port}"
    lines = "\n".join(f'{{"sku": "C{number}", "qty": {number}}}' for number in range(120))
    for words in (["add", "orders", "--url", url, "sku=C1"], ["groups", "orders", "--url", url]):
        subprocess.run(
            [sys.executable, "-m", "penstock", *words], check=True, capture_output=True, input=""
        )
    add = [sys.executable, "-m", "penstock", "add", "orders", "--url", url, "-"]
    subprocess.run(add, check=True, capture_output=True, input=lines, text=True)


def run_bulk_reader(server: PenstockServer) -> None:
    schema = pa.schema([("sku", pa.string()), ("qty", pa.int64())])
    for native in (True, False):
        options = BulkOptions(fetch_size=200, native=native)
        with BulkReader(server.client(), schema, options) as reader:
            list(reader.batches(b"orders", "-", "+"))


def run_spark(server: PenstockServer) -> None:
    url = f"redis://127.0.0.1:{server.port}"
    subprocess.run([sys.executable, "-c", SPARK_SINK, url], check=True)


def main() -> None:
    runs: list[Callable[[PenstockServer], None]] = [
        run_redis_py,
        run_redis_cli,
        run_command_line,
        run_bulk_reader,
        run_spark,
    ]
    with running_penstock("--appendonly", "no") as server, recording(server) as lines:
        for run in runs:
            run(server)
    RECORDING.parent.mkdir(exist_ok=True)
    RECORDING.write_text("".join(f"{line}\n" for line in lines[:-1]))
    print(f"{len(lines) - 1} commands in {RECORDING.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
