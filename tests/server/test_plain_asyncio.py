"""A server without uvloop, on asyncio's own event loop: what machines without a wheel of uvloop run."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["uvloop"] = None  # import uvloop fails

import asyncio, threading
import redis
import penstock
from penstock.server.app import new_event_loop
assert new_event_loop is asyncio.new_event_loop

def read(port, seen):
    with redis.Redis(port=port, protocol=3) as blocked:
        seen.append(blocked.xread({"s": "$"}, block=60_000))

with penstock.open() as database, database.serve(port=0) as serving:
    with redis.Redis(port=serving.port) as client:
        for number in range(1000):
            client.xadd("s", {"n": number, "filler": b"x" * 5000})
        seen = []
        reader = threading.Thread(target=read, args=(serving.port, seen))
        reader.start()
        while client.info("clients")["blocked_clients"] == 0:
            pass
        database.xadd("s", {"n": "last"})
        reader.join()
        assert len(client.xrange("s")) == 1001
        ((_, fields),) = seen[0][b"s"][0]
        assert fields == {b"n": b"last"}
print("served")
"""


def test_a_server_runs_on_asyncio_s_own_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout == "served\n", done.stderr
