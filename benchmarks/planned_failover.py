"""Measures how long writers stand still during FAILOVER, beside Redis.

    python benchmarks/planned_failover.py [--rounds 10] [--write]

Five writers work on a pair; the role goes from one server to the other and back (tests/support/replication).
The figure is the longest time in which no writer was answered. `--write` writes the table into
docs/high-availability.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from _tables import Rows, machine_line, markdown, write_section

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.replication.links import QUICK, client_of, follow, same  # noqa: E402 - found through ROOT
from tests.support.replication.writers import (  # noqa: E402
    hand_over,
    longest_gap,
    lost,
    until_answered,
    working,
)
from tests.support.servers.durable_redis import running_durable_redis  # noqa: E402
from tests.support.servers.penstock_server import running_penstock  # noqa: E402
from tests.support.servers.redis_server import redis_program_or_none  # noqa: E402

Start = Callable[[ExitStack, Path], int]
HEAD = ["from and to", "hand-overs", "acknowledged", "lost", "longest time without writes"]


def penstock(acks: int, level: str = "8.6") -> Start:
    """Start a penstock with a log; return its port."""
    words = (*QUICK, "--compat-version", level, "--min-replicas-ack", str(acks))
    return lambda stack, folder: stack.enter_context(running_penstock(*words, data=folder)).port


def redis(stack: ExitStack, folder: Path) -> int:
    """Start a Redis with a log; return its port."""
    lines = "repl-diskless-sync-delay 0\nenable-debug-command yes\n"
    return stack.enter_context(running_durable_redis(folder, lines)).port


PAIRS: dict[str, tuple[Start, Start]] = {
    "Redis, Redis": (redis, redis),
    "penstock, penstock": (penstock(0), penstock(0)),
    "penstock, penstock, min-replicas-ack 1": (penstock(1), penstock(1)),
    "Redis, penstock": (redis, penstock(0, "7.0")),
}


def measure(starts: tuple[Start, Start], rounds: int) -> list[str]:
    """Let the role go to and fro; return a row without its title."""
    with tempfile.TemporaryDirectory(prefix="penstock-planned-") as name, ExitStack() as stack:
        folders = [Path(name, side) for side in ("a", "b")]
        for folder in folders:
            folder.mkdir()
        ports = [start(stack, folder) for start, folder in zip(starts, folders, strict=True)]
        old, new = map(client_of, ports)
        follow(new, ports[0])
        with working(*ports) as writers:
            for _ in range(rounds):
                until_answered(writers)
                hand_over(old, new)
                old, new = new, old
            until_answered(writers)
        same(old, new)
        acknowledged = sum(len(writer.acknowledged) for writer in writers)
        missing = len(lost(writers, old))
        gap = f"{longest_gap(writers):.2f} s"
        return [str(rounds), f"{acknowledged:,}", str(missing), gap]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if redis_program_or_none() is None:
        sys.exit("benchmarks/planned_failover.py: needs redis-server (make redis)")
    rows: Rows = [[title, *measure(starts, arguments.rounds)] for title, starts in PAIRS.items()]
    print(markdown(HEAD, rows))
    if arguments.write:
        page = ROOT / "docs/high-availability.md"
        write_section(page, "planned_failover", machine_line(), [(HEAD, rows)])


if __name__ == "__main__":
    main()
