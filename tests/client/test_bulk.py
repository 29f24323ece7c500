"""The bulk reader with running servers: penstock by nodes and ranges, Redis by ranges."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
import redis

from penstock.client.bulk import BulkOptions, BulkReader, is_native
from penstock.client.rows import RowLimits
from penstock.errors import CommandError, ConnectionLost, CorruptData
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import RedisServer, free_port

SCHEMA = pa.schema({"_id": pa.string(), "n": pa.int64(), "text": pa.string()})
COUNT = 2_500


@pytest.fixture(scope="module")
def penstock_server() -> Iterator[PenstockServer]:
    with running_penstock() as server:
        yield server


def fill(client: redis.Redis) -> list[tuple[str, int, str]]:
    """A stream with deleted entries and different names. Returns the expected rows."""
    client.delete("s")
    with client.pipeline(transaction=False) as pipeline:
        for n in range(COUNT):
            fields: dict[str, object] = {"n": n, "text": f"t{n}"}
            if n % 7 == 0:
                fields = {"text": f"t{n}", "more": "x" * (n % 200), "n": n}
            pipeline.xadd("s", fields, id=f"{n // 3 + 1}-{n % 3}")  # type: ignore[arg-type]
        pipeline.execute()
    gone = [n for n in range(COUNT) if n % 11 == 0]
    client.xdel("s", *(f"{n // 3 + 1}-{n % 3}" for n in gone))
    return [(f"{n // 3 + 1}-{n % 3}", n, f"t{n}") for n in range(COUNT) if n % 11]


def read(
    client: redis.Redis, options: BulkOptions, start: str = "-", end: str = "+"
) -> list[tuple[object, ...]]:
    with BulkReader(client, SCHEMA, options) as reader:
        batches = list(reader.batches(b"s", start, end))
    assert all(batch.num_rows == 300 for batch in batches[:-1])
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("native", [None, False])
@pytest.mark.parametrize("fetch_size", [1, 99, 1000, 10_000])
def test_penstock_returns_all_of_a_range(
    penstock_server: PenstockServer, native: bool | None, fetch_size: int, protocol: int
) -> None:
    with penstock_server.client(protocol=protocol) as client:
        expected = fill(client)
        options = BulkOptions(fetch_size, native, RowLimits(300))
        assert is_native(client)
        assert read(client, options) == expected
        assert read(client, options, "(100-0", "200-1") == [
            row
            for row in expected
            if 297 < row[1] <= 598  # ids of n: n // 3 + 1, n % 3
        ]


@pytest.mark.parametrize("fetch_size", [1, 99, 10_000])
def test_redis_returns_all_of_a_range(redis_server: RedisServer, fetch_size: int) -> None:
    client = redis_server.client
    expected = fill(client)
    assert not is_native(client)
    assert read(client, BulkOptions(fetch_size, None, RowLimits(300))) == expected


def test_entries_are_read_by_their_ids(redis_server: RedisServer) -> None:
    expected = {row[0]: row for row in fill(redis_server.client)}
    ids = [f"{n // 3 + 1}-{n % 3}" for n in range(COUNT - 1, -1, -1)]
    with BulkReader(redis_server.client, SCHEMA) as reader:
        batches = list(reader.batches_of(b"s", [text.encode() for text in ids]))
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert found == [expected[text] for text in ids if text in expected]


def test_a_missing_stream_has_no_batches(penstock_server: PenstockServer) -> None:
    with penstock_server.client() as client, BulkReader(client, SCHEMA) as reader:
        assert list(reader.batches(b"missing", "-", "+")) == []


def test_a_connection_goes_back_to_the_client_and_still_works(redis_server: RedisServer) -> None:
    with redis.Redis(port=redis_server.port, max_connections=1) as client:
        fill(client)
        read(client, BulkOptions(limits=RowLimits(300)))
        with BulkReader(client, SCHEMA, BulkOptions(100)) as reader:
            next(reader.batches(b"s", "-", "+"))  # the rest is never read
        assert client.ping()


def test_a_refusal_names_server_and_stream(redis_server: RedisServer) -> None:
    redis_server.client.set("text", "x")
    with BulkReader(redis_server.client, SCHEMA) as reader, pytest.raises(CommandError) as caught:
        list(reader.batches(b"text", "-", "+"))
    assert caught.value.code == "WRONGTYPE"
    assert f"stream 'text' of 127.0.0.1:{redis_server.port}" in str(caught.value).replace(
        "localhost", "127.0.0.1"
    )


def test_an_unreachable_server_is_named_without_its_password() -> None:
    client = redis.Redis.from_url(f"redis://user:secret@127.0.0.1:{free_port()}/0")
    with client, pytest.raises(ConnectionLost) as caught, BulkReader(client, SCHEMA) as reader:
        list(reader.batches(b"s", "-", "+"))
    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nn\r\n$90\r\nhalf", ConnectionLost),
        (b"+OK\r\n", CorruptData),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", CorruptData),
    ],
)
def test_a_broken_or_foreign_server_is_reported(answer: bytes, error: type[Exception]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                asked = b""
                while b"XRANGE" not in asked:
                    asked = connection.recv(1 << 16)
                    # The commands that redis-py sends first.
                    connection.sendall(b"+OK\r\n" * asked.count(b"SETINFO"))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        client = redis.Redis(host="127.0.0.1", port=port, protocol=2)
        with (
            BulkReader(client, SCHEMA, BulkOptions(native=False)) as reader,
            pytest.raises(error, match=r"stream 's' of 127\.0\.0\.1"),
        ):
            list(reader.batches(b"s", "-", "+"))
        client.close()
        thread.join()
