"""Reading a partition as a worker does: connections, pages, losses after planning."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.spark.conftest import NO_PYSPARK, Broker, fill
from tests.support.servers.redis_server import free_port, redis_program_or_none, running_redis

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pa = pytest.importorskip("pyarrow")
batch = pytest.importorskip("penstock.spark.source.batch_reader")
options_module = pytest.importorskip("penstock.spark.source.options")
planning = pytest.importorskip("penstock.spark.source.planning")
schema = pytest.importorskip("penstock.spark.source.schema")

COLUMNS = schema.EntrySchema(pa.schema([("_id", pa.string()), ("v", pa.int32())]))


def reader_of(**options: str) -> Any:
    """A copy through pickle, as in a worker."""
    made = batch.BatchReader(options_module.parse_options({"stream": "s", **options}), COLUMNS)
    return pickle.loads(pickle.dumps(made))


def rows_of(reader: Any, partitions: Any = None) -> list[int]:
    planned = reader.partitions() if partitions is None else partitions
    return [
        row["v"]
        for partition in pickle.loads(pickle.dumps(planned))
        for made in reader.read(partition)
        for row in made.to_pylist()
    ]


def test_partitions_cover_everything_once(broker: Broker) -> None:
    fill(broker.client, "s", 103)
    for parts in ("1", "2", "7", "200"):
        reader = reader_of(**broker.options, minPartitions=parts, fetchSize="10")
        assert rows_of(reader) == list(range(103))


def test_the_size_of_a_plan_does_not_depend_on_the_number_of_entries(server: Broker) -> None:
    sizes = []
    for count in (10, 5_000):
        server.client.delete("s")
        fill(server.client, "s", count)
        planned = reader_of(**server.options, minPartitions="4").partitions()
        sizes.append(max(len(pickle.dumps(one)) for one in planned))
    assert max(sizes) < 1000
    assert max(sizes) - min(sizes) < 20  # numbers with more digits


def test_a_partition_has_no_server_and_no_password(penstock: Broker) -> None:
    fill(penstock.client, "s", 3)
    (partition,) = reader_of(**penstock.options).partitions()
    assert b"127.0.0.1" not in pickle.dumps(partition)


@pytest.mark.parametrize("how", ["penstock", "redis"])
def test_a_trim_between_plan_and_read_is_a_loss(how: str, request: pytest.FixtureRequest) -> None:
    broker: Broker = request.getfixturevalue(f"{how}_broker")
    broker.client.flushall()
    fill(broker.client, "s", 20)
    reader = reader_of(**broker.options, minPartitions="2")
    planned = reader.partitions()
    assert len(planned) == 2
    broker.client.xtrim("s", maxlen=5, approximate=False)
    with pytest.raises(planning.DataLoss, match="were removed before they were read"):
        rows_of(reader, planned)
    careless = reader_of(**broker.options, failOnDataLoss="false")
    assert rows_of(careless, planned) == [15, 16, 17, 18, 19]


def test_deletions_by_xdel_are_not_a_loss(broker: Broker) -> None:
    added = fill(broker.client, "s", 20)
    reader = reader_of(**broker.options, minPartitions="2")
    planned = reader.partitions()
    broker.client.xdel("s", added[3], added[15])
    assert rows_of(reader, planned) == [v for v in range(20) if v not in (3, 15)]


def with_password(folder: Path) -> tuple[list[str], Callable[[int], dict[str, str]]]:
    return [], lambda port: {
        "url": f"redis://127.0.0.1:{port}",
        "password": "sesame",
    }


def with_unix_socket(folder: Path) -> tuple[list[str], Callable[[int], dict[str, str]]]:
    path = folder / "r.sock"
    return ["--unixsocket", str(path)], lambda _: {"url": f"unix://{path}"}


def with_tls(folder: Path) -> tuple[list[str], Callable[[int], dict[str, str]]]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH to make a certificate with")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*request, *names, "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    files += ["--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"]
    return files, lambda port: {"url": f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}"}


@pytest.mark.parametrize("how", [with_password, with_unix_socket, with_tls])
def test_a_server_is_reached_by_every_kind_of_url(how: Any, tmp_path: Path) -> None:
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    arguments, options_of = how(tmp_path)
    with running_redis(*arguments) as server:
        fill(server.client, "s", 5)
        port = server.port
        if how is with_password:
            server.client.config_set("requirepass", "sesame")
        if how is with_tls:
            port = free_port()
            try:
                server.client.config_set("tls-port", port)
            except redis.ResponseError as error:
                pytest.skip(f"this Redis has no TLS: {error}")
        assert rows_of(reader_of(**options_of(port))) == [0, 1, 2, 3, 4]


def test_a_start_in_the_middle_has_a_count_that_detects_trims_and_splits_the_work(
    penstock: Broker,
) -> None:
    exclusive = pytest.importorskip("penstock.spark.source.exclusive_reader")
    limits = pytest.importorskip("pyspark.sql.streaming.datasource")
    added = fill(penstock.client, "s", 40)
    start = {"startingOffsets": f'{{"s": "{added[10]}"}}'}
    assert len(reader_of(**penstock.options, **start, minPartitions="3").partitions()) == 3
    options = options_module.parse_options({"stream": "s", **penstock.options, **start})
    reader = exclusive.ExclusiveReader(options, COLUMNS)
    begun = reader.initialOffset()
    assert begun["streams"]["s"]["n"] == 10
    penstock.client.xtrim("s", maxlen=20, approximate=False)
    with pytest.raises(planning.DataLoss, match=f"before {added[20]} were removed"):
        reader.latestOffset(begun, limits.ReadAllAvailable())
    reader.stop()
