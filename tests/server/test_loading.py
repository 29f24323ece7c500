"""A server that loads its data accepts connections and replies LOADING. The test controls the disk."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from penstock.engine.execute import Engine
from penstock.persist.disk import Source, SystemDisk
from penstock.persist.rows import DATA_ROWS
from penstock.persist.store import Store
from penstock.server.app import App, new_event_loop
from penstock.server.config.directives import default_config
from penstock.server.loading import layout_of
from penstock.server.net.listener import open_sockets
from tests.support.servers.raw_redis import encode

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


class GatedDisk(SystemDisk):
    """A disk that blocks reads until the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def read(self, path: str, offset: int = 0) -> Source:
        self.gate.wait()
        return super().read(path, offset)


class LoadingApp:
    """A server that has started to load a directory with one entry."""

    def __init__(self, folder: Path) -> None:
        entry = encode([b"XADD", b"s", b"1-1", b"a", b"1"])
        (folder / "appendonly.aof").write_bytes(entry)
        config = default_config()
        config.set_at_start("dir", str(folder))
        config.set_at_start("port", "0")
        config.set_at_start("bind", "127.0.0.1")
        self.disk = GatedDisk()
        engine = Engine()
        self._store = Store(self.disk, layout_of(config), engine, DATA_ROWS)
        self._store.lock()
        self._sockets = open_sockets(config, any_port=True)
        self.app = App(engine, config, asyncio.get_running_loop())

    async def start(self) -> asyncio.Task[None]:
        await self.app.start(self._sockets)
        self.port = self._sockets.plain[0].getsockname()[1]
        return asyncio.create_task(self.app.load(self._store))

    async def ask(self, *words: bytes) -> bytes:
        """The first reply."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(encode(words))
        reply = await reader.read(1 << 16)
        writer.close()
        return reply


def test_clients_get_loading_while_data_is_loaded(tmp_path: Path) -> None:
    async def play() -> None:
        server = LoadingApp(tmp_path)
        loaded = await server.start()
        for words in ([b"XLEN", b"s"], [b"PING"], [b"XADD", b"s", b"*", b"a", b"1"]):
            assert await server.ask(*words) == LOADING
        assert await server.ask(b"ECHO", b"x") == b"$1\r\nx\r\n"
        assert b"loading:1\r\n" in await server.ask(b"INFO", b"persistence")
        server.disk.gate.set()
        await loaded
        assert await server.ask(b"XLEN", b"s") == b":1\r\n"
        assert b"loading:0\r\n" in await server.ask(b"INFO", b"persistence")
        await server.app.end()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(play())


def test_a_loading_server_can_be_stopped(tmp_path: Path) -> None:
    async def play() -> None:
        server = LoadingApp(tmp_path)
        loaded = await server.start()
        server.app.request_stop()
        await loaded
        await server.app.end()
        server.disk.gate.set()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(play())
    assert not (tmp_path / "appendonlydir").exists()
