"""A server that replies to every command with the same bytes, valid or not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE = 64 << 10

# Each is sent once per connection, after the first command. Then the connection is closed.
REPLIES: dict[str, bytes] = {
    "nested a hundred thousand deep": b"*1\r\n" * 100_000 + b":1\r\n",
    "nested five hundred deep": b"*1\r\n" * 500 + b":1\r\n",
    "nested and wide": b"*2\r\n:1\r\n" * 100_000 + b":1\r\n",
    "a string of a terabyte": b"$1000000000000\r\nabc",
    "an array of a billion": b"*1000000000\r\n:1\r\n",
    "a length of 400 digits": b"$" + b"9" * 400 + b"\r\n",
    "a length of 5000 digits": b"*" + b"9" * 5000 + b"\r\n",
    "a length below zero": b"$-2\r\n",
    "an array below zero": b"*-2\r\n",
    "a length that is no number": b"$abc\r\n",
    "a number that is none": b":x\r\n",
    "a number of 5000 digits": b":" + b"1" * 5000 + b"\r\n",
    "cut off in a string": b"$5\r\nab",
    "cut off in an array": b"*3\r\n:1\r\n",
    "cut off in a line": b"+OK",
    "nothing": b"",
    "an empty line": b"\r\n",
    "RESP3": b"%1\r\n+a\r\n:1\r\n",
    "not the protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "bytes that are no text": b"\xff\xfe\x00\r\n",
    "an odd MOVED": b"-MOVED\r\n",
    "an odd ASK": b"-ASK x y z\r\n",
    "an error that is no text": b"-\xff\x1b[31m\r\n",
}
# These are repeated: each is a complete reply, but of the wrong type for most commands.
REPEATED: dict[str, bytes] = {
    "numbers": b":7\r\n",
    "numbers below zero": b":-7\r\n",
    "nulls": b"$-1\r\n",
    "null arrays": b"*-1\r\n",
    "empty arrays": b"*0\r\n",
    "texts": b"+QUEUED\r\n",
    "strings": b"$3\r\n\xff\x00a\r\n",
    "arrays of one": b"*1\r\n:1\r\n",
    "arrays of three": b"*3\r\n:1\r\n$-1\r\n*0\r\n",
    "arrays of arrays": b"*2\r\n*1\r\n:1\r\n*1\r\n*1\r\n$1\r\nx\r\n",
    "arrays with an error inside": b"*2\r\n-ERR x\r\n-ERR y\r\n",
    "large numbers as texts": b"*2\r\n$30\r\n" + b"9" * 30 + b"\r\n$30\r\n" + b"9" * 30 + b"\r\n",
    "names without values": b"*1\r\n$4\r\nname\r\n",
    "errors": b"-ERR no\r\n",
}
# These never end.
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "an endless line": (b"+", b"a" * PIECE),
    "an endless line with line feeds": (b"+", b"a\n" * (PIECE // 2)),
    "an endless array": (b"*10000000\r\n", b":1\r\n" * (PIECE // 4)),
    "an endless string": (b"$500000000\r\n", b"a" * PIECE),
    "endless nesting": (b"", b"*1\r\n" * (PIECE // 4)),
}


class Hostile:
    """Serves connections until it is closed: sends `begin`, then repeats `again`."""

    def __init__(self, begin: bytes, again: bytes = b"", answers: bytes = b"") -> None:
        self._begin, self._again, self._answers = begin, again, answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        # shutdown wakes a thread in accept; close does not.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(PIECE):
                if not self._answers:
                    break
                connection.sendall(self._answers * count_commands(data))
            if not data:
                return
            connection.sendall(self._begin)
            while self._again:
                connection.sendall(self._again)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(PIECE):
                pass


def count_commands(data: bytes) -> int:
    """The number of commands in these bytes. No test sends arguments that contain such lines."""
    return sum(1 for line in data.split(b"\r\n") if line.startswith(b"*"))


@contextmanager
def hostile(begin: bytes, again: bytes = b"", answers: bytes = b"") -> Iterator[Hostile]:
    """Run a hostile server, and close it afterwards."""
    server = Hostile(begin, again, answers)
    try:
        yield server
    finally:
        server.close()
