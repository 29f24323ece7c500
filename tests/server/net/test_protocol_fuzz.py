"""A server that gets random bytes (fuzz/server.py) survives, stays small and serves its clients."""

from __future__ import annotations

import random
from pathlib import Path

from fuzz.server import DAMAGES, run_campaign
from tests.support.campaign import cases
from tests.support.servers.penstock_server import running_penstock

GROWTH_BYTES_MAX = 200 << 20  # unread replies are kept, within the limits


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def test_clients_are_served_while_others_send_random_bytes() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown if it fails
    with running_penstock() as server:
        before = resident_bytes(server.pid)
        thrown = run_campaign(server.port, cases(60), seed)
        assert server.process.poll() is None
        assert resident_bytes(server.pid) - before < GROWTH_BYTES_MAX
        assert server.client().ping()
        log = server.log()
        assert "Traceback" not in log, log[-5000:]
        assert " failed" not in log, log[-5000:]
    for damage in DAMAGES:
        assert thrown[damage.__name__], thrown
