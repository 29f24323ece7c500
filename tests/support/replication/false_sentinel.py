"""A server that is its own Sentinel: it names itself as the primary, and answers as a test tells it to.

with FalseSentinel({b"XLEN": [b"-NOREPLICAS no\\r\\n", b":3\\r\\n"]}) as server:
    server.url, server.heard
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

from tests.support.servers.raw_redis import encode, read_reply


class FalseSentinel:
    """`answers`: the replies to each command, one after the other; the last one is repeated."""

    def __init__(self, answers: dict[bytes, list[bytes]]) -> None:
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self.url = f"redis+sentinel://127.0.0.1:{self._port}/queue"
        self.heard: list[list[bytes]] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> FalseSentinel:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with (
            suppress(OSError, EOFError, ValueError, IndexError),
            connection,
            connection.makefile("rb") as source,
        ):
            while True:
                words: list[bytes] = read_reply(source)
                self.heard.append(words)
                connection.sendall(self._answer(words))

    def _answer(self, words: list[bytes]) -> bytes:
        if words[0] == b"SENTINEL":
            facts = [b"name", b"queue", b"ip", b"127.0.0.1", b"port", b"%d" % self._port]
            facts += [b"flags", b"master", b"num-other-sentinels", b"2"]
            return b"*1\r\n" + encode(facts)
        replies = self._answers.get(words[0].upper(), [b"+OK\r\n"])
        return replies.pop(0) if len(replies) > 1 else replies[0]
