"""Clients that put load on a server until it dies or they are stopped, and record its replies in a ledger."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from tests.support.disk.consuming import Clerk, Reader
from tests.support.disk.ledger import Ledger
from tests.support.disk.producing import ListEditor, Producer, Trimmer, Writer
from tests.support.disk.server_state import GROUPS, STREAMS
from tests.support.servers.raw_redis import RawRedis

WRITERS = 3
READERS = 3
VERSION = "8.8"  # the first with all of the commands that the clients use


def prepare(port: int) -> None:
    """Create the streams and their groups."""
    with RawRedis(port) as client:
        words = [b"XGROUP", b"CREATE"]
        made = client.ask([[*words, s, g, b"0", b"MKSTREAM"] for s in STREAMS for g in GROUPS])
        assert set(made) == {"OK"}


class Workload:
    """Threads, one for each client. End them with stop() or join(). `errors`: what they found wrong."""

    def __init__(self, port: int, ledger: Ledger, dice: random.Random) -> None:
        self.errors: list[BaseException] = []
        self._port = port
        self._stop = threading.Event()
        clients: list[Writer | Reader | Producer | Trimmer | Clerk | ListEditor] = [
            *(Writer(f"w{n}", ledger) for n in range(WRITERS)),
            *(Reader(b"r%d" % n, ledger) for n in range(READERS)),
            Producer("producer", ledger),
            Trimmer("trimmer", ledger),
            Clerk(ledger),
            ListEditor(ledger),
        ]
        self._threads = [
            threading.Thread(target=self._run, args=(client.work, random.Random(dice.random())))
            for client in clients
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the clients stop after their current reply, and wait for them."""
        self._stop.set()
        self.join()

    def join(self) -> None:
        """Wait until all clients have ended. Raises the first error of any of them."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _run(self, job: Callable[[RawRedis, random.Random], None], dice: random.Random) -> None:
        try:
            with RawRedis(self._port) as client:
                while not self._stop.is_set():
                    job(client, dice)
        except (OSError, EOFError):
            pass  # the server is gone
        except BaseException as error:  # noqa: BLE001 - join() raises it
            self.errors.append(error)
