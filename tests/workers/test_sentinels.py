"""Workers behind real Sentinels: they follow a failover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.errors import CommandError, ConnectionLost
from penstock.work import App, Handler, Message
from tests.support.replication.sentinels import running_group
from tests.support.servers.programs import REDIS_7_0
from tests.support.work.waiting import wait_until

SETTINGS = "appendfsync always\nmin-replicas-ack 2\nmin-replicas-ack-timeout 500\n"
ENTRIES = 40


def test_workers_follow_a_failover_and_lose_nothing(tmp_path: Path) -> None:
    """With two acks. So the server that was killed has to come back, or no write would be answered."""
    REDIS_7_0.need()
    ran: set[int] = set()
    settled: set[int] = set()
    with running_group(tmp_path, SETTINGS) as group:
        app = App(group.url, group="g")

        @app.on("jobs", lease=5)
        def job(number: int, msg: Message) -> None:
            ran.add(number)
            msg.send("keyed", {"key": number % 3, "number": number})

        @app.on("keyed", key="key", lease=5)
        def keyed(payload: dict[str, int]) -> None:
            settled.add(payload["number"])

        worker = app.worker()
        worker.start()
        for number in range(ENTRIES):
            wait_until(lambda: _sends(job, number))  # noqa: B023
            if number == ENTRIES // 2:
                wait_until(lambda: ran)
                old = group.primary()
                old.server.kill()
                group.wait_for_primary_other_than(old)
                assert group.heal() is not old
        wait_until(lambda: len(settled) == ENTRIES)
        wait_until(lambda: not any(count for _, count in worker.held_counts()))
        assert worker.stop()
        for stream in ("jobs", "keyed"):
            assert app.backend.ask("XPENDING", stream, "g")[0] == 0
            assert app.backend.ask("XLEN", f"{stream}:dead") == 0
        app.close()


def _sends(job: Handler[Any], number: int) -> bool:
    """Send; False while there is no primary. Then it may have been added."""
    try:
        job.send(number)
    except (CommandError, ConnectionLost):
        return False
    return True
