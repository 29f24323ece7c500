"""Fixtures: one Spark session and one server of each kind for all tests in this directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis

from tests.support.campaign import cells
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_cluster import cluster_problem_or_none, running_cluster
from tests.support.servers.redis_server import redis_program_or_none, running_redis
from tests.support.spark.databases import (
    SQLITE_NATIVE,
    Database,
    PostgresServer,
    need_databases,
    running_postgres,
    sqlite_database,
)

# Less optimisation in Java halves the start-up time. The variable also reaches commands that a test runs.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
NO_PYSPARK = "pyspark is not installed: make build, or pip install penstock[spark]"


@dataclass(frozen=True)
class Broker:
    """A server or a cluster: the options for the source, and an ordinary client."""

    kind: str
    options: dict[str, str]
    client: Any


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with two cores."""
    pytest.importorskip("pyspark", reason=NO_PYSPARK)
    session_module = pytest.importorskip("penstock.spark.runtime.session")
    settings = {
        "spark.driver.memory": "768m",
        "spark.sql.shuffle.partitions": "2",
        # Spark's usual one starts a process (readlink) several times for each file of a checkpoint.
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
    }
    session = session_module.build_session("tests", "local[2]", "OFF", settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def penstock_broker() -> Iterator[Broker]:
    with running_penstock() as server, server.client() as client:
        yield Broker("penstock", {"url": f"redis://127.0.0.1:{server.port}"}, client)


@pytest.fixture(scope="session")
def redis_broker() -> Iterator[Broker]:
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    with running_redis() as server, redis.Redis(port=server.port) as client:
        yield Broker("redis", {"url": f"redis://127.0.0.1:{server.port}"}, client)


@pytest.fixture(scope="session")
def cluster_broker() -> Iterator[Broker]:
    problem = cluster_problem_or_none()
    if problem is not None:
        pytest.skip(problem)
    with running_cluster() as cluster, cluster.client() as client:
        yield Broker("cluster", {"url": cluster.url, "cluster": "true"}, client)


@pytest.fixture(params=cells(["penstock", "redis", "cluster"]))
def broker(request: pytest.FixtureRequest) -> Broker:
    """One kind of server, empty; each of them in `make soak`."""
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    found.client.flushall()
    return found


@pytest.fixture(params=cells(["penstock", "redis"]))
def server(request: pytest.FixtureRequest) -> Broker:
    """penstock or Redis, empty; both in `make soak`. For slow tests."""
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    found.client.flushall()
    return found


@pytest.fixture
def penstock(penstock_broker: Broker) -> Broker:
    """penstock's server, empty."""
    penstock_broker.client.flushall()
    return penstock_broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests."""
    need_databases()
    with running_postgres() as server:
        yield server


@pytest.fixture(params=cells(["postgresql", "sqlite"]))
def database(
    request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Database:
    """An empty database; of each kind in `make soak`."""
    need_databases()
    if request.param == "sqlite":
        spark._jvm.java.lang.System.setProperty("org.sqlite.lib.path", SQLITE_NATIVE)
        return sqlite_database(tmp_path_factory.mktemp("sqlite"))
    server: PostgresServer = request.getfixturevalue("postgres")
    server.database.ask("drop schema public cascade")
    server.database.ask("create schema public")
    return server.database


@pytest.fixture
def read(spark: Any) -> Callable[..., Any]:
    """Read a batch: read(broker, schema, **options)."""

    def reading(broker: Broker, schema: str | None = None, **options: Any) -> Any:
        reader = spark.read.format("penstock").options(**broker.options, **options)
        return (reader.schema(schema) if schema else reader).load()

    return reading


@pytest.fixture
def drain(spark: Any) -> Callable[..., list[Any]]:
    """Run a query over all existing entries into Parquet at `folder`, and return all rows there."""

    def draining(broker: Broker, folder: Any, schema: str, **options: Any) -> list[Any]:
        frame = (
            spark.readStream.format("penstock")
            .options(**{"startingOffsets": "earliest", **broker.options, **options})
            .schema(schema)
            .load()
        )
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(folder / "lake"))
        )
        query.awaitTermination()
        rows: list[Any] = spark.read.schema(schema).parquet(str(folder / "lake")).collect()
        return rows

    return draining


def fill(client: Any, stream: str, count: int, begin: int = 0) -> list[str]:
    """Add entries with an increasing field v. Returns their ids."""
    with client.pipeline(transaction=False) as pipeline:
        for number in range(begin, begin + count):
            pipeline.xadd(stream, {"v": number})
        return [one.decode() for one in pipeline.execute()]
