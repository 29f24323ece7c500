"""redis-py, sync and asyncio, sees no difference between penstock and Redis."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
import redis.asyncio

from tests.support.redis_py import scenario
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import RedisServer

PIPELINE_COMMANDS = 100_000
READERS = 200
WAIT_SECONDS_MAX = 60

both_protocols = pytest.mark.parametrize("protocol", [2, 3], ids=["RESP2", "RESP3"])


@pytest.fixture(scope="module")
def running() -> Iterator[PenstockServer]:
    with running_penstock("--compat-version", "7.0") as server:
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture
def server(running: PenstockServer) -> PenstockServer:
    with running.client() as client:
        client.flushall()
    return running


class AsyncClient:
    """The asyncio client of redis-py, with blocking methods."""

    def __init__(self, port: int, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client: Any = redis.asyncio.Redis(port=port, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Coroutine[Any, Any, Any]] = getattr(self._client, name)

        @functools.wraps(method)
        def waiting(*args: Any, **options: Any) -> Any:
            async def call() -> Any:
                return await method(*args, **options)

            return self._runner.run(call())

        return waiting

    def __enter__(self) -> AsyncClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.aclose()
        self._runner.close()


@both_protocols
@pytest.mark.parametrize("decode", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("kind", [redis.Redis, AsyncClient], ids=["sync", "asyncio"])
def test_the_scenario_gives_the_same_results(
    redis_server: RedisServer, server: PenstockServer, kind: Any, decode: bool, protocol: int
) -> None:
    found = []
    for port in (server.port, redis_server.port):
        with kind(port=port, protocol=protocol, decode_responses=decode) as client:
            found.append(scenario.run(client))
    different = [pair for pair in zip(*found, strict=True) if pair[0] != pair[1]]
    assert not different, "\n".join(f"ours   {ours}\ntheirs {theirs}" for ours, theirs in different)


@both_protocols
def test_threads_share_a_pool(server: PenstockServer, protocol: int) -> None:
    kind: Any = redis.BlockingConnectionPool
    pool = kind(port=server.port, protocol=protocol, max_connections=8)
    client = redis.Redis(connection_pool=pool)

    def work(name: int) -> None:
        for n in range(50):
            client.xadd("s", {"worker": name, "n": n})
            client.incr("count")

    with ThreadPoolExecutor(20) as workers:
        list(workers.map(work, range(20)))
    assert client.get("count") == b"1000"
    entries: Any = client.xrange("s")
    assert len(entries) == 1000
    for name in range(20):
        own = [int(fields[b"n"]) for _, fields in entries if fields[b"worker"] == b"%d" % name]
        assert own == list(range(50))
    pool.disconnect()


def test_a_pipeline_of_a_hundred_thousand_commands(server: PenstockServer) -> None:
    with server.client(protocol=3) as client:
        pipeline = client.pipeline(transaction=False)
        for n in range(1, PIPELINE_COMMANDS):
            pipeline.xadd("s", {"n": n}, id=f"{n}-0")
        pipeline.xlen("s")
        replies = pipeline.execute()
        assert replies[-1] == PIPELINE_COMMANDS - 1
        assert replies[:-1] == [b"%d-0" % n for n in range(1, PIPELINE_COMMANDS)]


@both_protocols
def test_transactions_and_watches(server: PenstockServer, protocol: int) -> None:
    with server.client(protocol=protocol) as client, server.client() as other:
        pipeline = client.pipeline()
        pipeline.xadd("s", {"a": "b"}, id="1-1").xlen("s").xlen("string")
        pipeline.set("string", "x").xrange("s")
        found = pipeline.execute()
        assert found == [b"1-1", 1, 0, True, [(b"1-1", {b"a": b"b"})]]
        pipeline.watch("string")
        other.set("string", "y")
        pipeline.multi()
        pipeline.get("string")
        with pytest.raises(redis.WatchError):
            pipeline.execute()
        pipeline.reset()


@both_protocols
def test_messages_and_events(server: PenstockServer, protocol: int) -> None:
    with server.client(protocol=protocol) as client, client.pubsub() as listener:
        client.config_set("notify-keyspace-events", "KEA")
        listener.subscribe("news")
        listener.psubscribe("__keyevent@0__:x*")
        client.publish("news", "rain")
        client.xadd("s", {"a": "b"})
        heard = [listener.get_message(timeout=WAIT_SECONDS_MAX) for _ in range(4)]
        assert [(found["type"], found["data"]) for found in heard if found] == [
            *[("subscribe", 1), ("psubscribe", 2), ("message", b"rain"), ("pmessage", b"s")]
        ]
        client.config_set("notify-keyspace-events", "")


@both_protocols
def test_messages_of_shard_channels(server: PenstockServer, protocol: int) -> None:
    with server.client(protocol=protocol) as client, client.pubsub() as listener:
        listener.ssubscribe("news")
        assert client.execute_command("SPUBLISH", "news", "rain") == 1
        listener.sunsubscribe("news")
        heard = [listener.parse_response(timeout=WAIT_SECONDS_MAX) for _ in range(3)]
        assert [found[0] for found in heard] == [b"ssubscribe", b"smessage", b"sunsubscribe"]


@both_protocols
def test_lists(server: PenstockServer, protocol: int) -> None:
    with server.client(protocol=protocol) as client:
        client.rpush("l", "a", "b", "c", "b")
        assert client.lset("l", 0, "x") is True
        assert client.linsert("l", "AFTER", "x", "y") == 5
        assert client.lpos("l", "b", rank=-1) == 4
        assert client.lpos("l", "b", count=0, maxlen=5) == [2, 4]
        assert client.lmpop(2, "missing", "l", direction="LEFT", count=2) == [b"l", [b"x", b"y"]]
        assert client.blmpop(0, 1, "l", direction="RIGHT", count=9) == [b"l", [b"b", b"c", b"b"]]
        assert client.lmpop(1, "l", direction="LEFT") is None
        assert client.blmpop(0.01, 1, "l", direction="LEFT") is None


@both_protocols
def test_client_side_caching_is_refused_clearly(server: PenstockServer, protocol: int) -> None:
    with server.client(protocol=protocol) as client:
        with pytest.raises(redis.ResponseError, match="does not track keys"):
            client.execute_command("CLIENT TRACKING", "ON")
        assert client.client_tracking_off() == b"OK"
        assert client.client_getredir() == -1


def reading_client(server: PenstockServer, protocol: int) -> Any:
    """A client with one connection per reader and no time limit."""
    return redis.asyncio.Redis(
        port=server.port, protocol=protocol, max_connections=READERS + 10, socket_timeout=None
    )


async def until_blocked(client: Any, count: int) -> None:
    while (await client.info("clients"))["blocked_clients"] != count:
        await asyncio.sleep(0.01)


@both_protocols
def test_two_hundred_blocked_readers_all_see_an_entry(
    server: PenstockServer, protocol: int
) -> None:
    async def play() -> None:
        async with reading_client(server, protocol) as client:
            reads = [client.xread({"s": "$"}, block=0) for _ in range(READERS)]
            waiting = asyncio.gather(*reads)
            await until_blocked(client, READERS)
            entry_id = await client.xadd("s", {"a": "b"})
            entries = [(entry_id, {b"a": b"b"})]
            expected = {b"s": [entries]} if protocol == 3 else [[b"s", entries]]
            assert await waiting == [expected] * READERS

    asyncio.run(asyncio.wait_for(play(), WAIT_SECONDS_MAX))


@both_protocols
def test_two_hundred_blocked_consumers_share_the_entries(
    server: PenstockServer, protocol: int
) -> None:
    async def play() -> None:
        async with reading_client(server, protocol) as client:
            await client.xgroup_create("s", "g", mkstream=True)
            reads = [
                client.xreadgroup("g", f"c{n}", {"s": ">"}, count=1, block=0)
                for n in range(READERS)
            ]
            waiting = asyncio.gather(*reads)
            await until_blocked(client, READERS)
            for n in range(READERS):
                await client.xadd("s", {"n": n}, id=f"{n + 1}-0")
            found = [str(reply) for reply in await waiting]
            assert len(set(found)) == READERS
            assert (await client.xpending("s", "g"))["pending"] == READERS
            assert (await client.info("clients"))["blocked_clients"] == 0

    asyncio.run(asyncio.wait_for(play(), WAIT_SECONDS_MAX))
