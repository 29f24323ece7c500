"""Measures the CPU time of KEYS with glob patterns against redis-server: one long name, many short ones.

    python benchmarks/_patterns.py [short names, default 200000]

For work on the matcher: it prints the median CPU time of the server in ms, over five calls, and writes no
page.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import redis
from _cpu import cpu_seconds

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import running_redis  # noqa: E402

LONG_NAME = b"a" * 100_000
LONG = (
    ("*a x 1000 b", b"*" + b"a" * 1000 + b"b"),
    ("*a x 1000 b*", b"*" + b"a" * 1000 + b"b*"),
    ("*a? x 500 b*", b"*" + b"a?" * 500 + b"b*"),
    ("*[ab] x 250 c*", b"*" + b"[ab]" * 250 + b"c*"),
    ("*a x 400 b", b"*a" * 400 + b"b"),
)
SHORT = tuple(
    (text, text.encode())
    for text in ("user:1*", "*:77*", "user:?5*", "*[^0-8]", "*r:[12]?3*", "user:*:nothing")
)


def cpu_ms(client: redis.Redis, pid: int, pattern: bytes) -> float:
    before = cpu_seconds(pid)
    client.keys(pattern)
    return (cpu_seconds(pid) - before) * 1000


def measure(title: str, patterns: tuple[tuple[str, bytes], ...], names: list[bytes]) -> None:
    sys.stdout.write(f"{title:28}{'penstock':>12}{'redis':>12}  ms\n")
    with running_penstock() as ours, running_redis() as theirs:
        clients = [redis.Redis(port=ours.port), theirs.client]
        for client in clients:
            for at in range(0, len(names), 10_000):
                client.mset(dict.fromkeys(names[at : at + 10_000], b""))
        pids = [client.info("server")["process_id"] for client in clients]
        for name, pattern in patterns:
            found = [
                statistics.median(cpu_ms(client, pid, pattern) for _ in range(5))
                for client, pid in zip(clients, pids, strict=True)
            ]
            sys.stdout.write(f"{name:28}{found[0]:12.2f}{found[1]:12.2f}\n")


def main() -> None:
    short = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    measure("one name of 100 KB", LONG, [LONG_NAME])
    measure(f"{short} short names", SHORT, [b"user:%d" % number for number in range(short)])


if __name__ == "__main__":
    main()
