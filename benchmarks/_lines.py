"""What benchmarks/server.py and benchmarks/persistence.py share: the servers, the works, and the table.

Each line of a table is a work that redis-benchmark or a raw client does, on one server after the other, in
each round. The table compares penstock with Redis 7.0, and in one column each with the other servers that
`make servers` has downloaded. It shows medians of the figures, and of the ratios within a round.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
from _cpu import cpu_seconds, user_and_kernel
from _tables import Rows

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.programs import REDIS_7_0, REDIS_8_0, VALKEY_9, Program  # noqa: E402
from tests.support.servers.redis_server import running_redis  # noqa: E402

CLIENTS = 50
FIVE_FIELDS = [word for i in range(5) for word in (f"field{i}", "0123456789abcdef")]
RATE = re.compile(r"([\d.]+) requests per second")
PEERS = (REDIS_7_0, REDIS_8_0, VALKEY_9)
ROUND_SECONDS_MAX = 600


@dataclass(frozen=True, slots=True)
class Side:
    """One of the servers."""

    name: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run of one line. `user`, `kernel`: ticks, too coarse for one run."""

    per_second: float
    cpu_us: float
    user: int
    kernel: int


Work = Callable[[Side, int], float]
"""Sends a number of commands to a server, and returns commands per second."""

Taken = dict[str, list[list[Figures]]]
"""For each line, the rounds; in a round, the figures of each side."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: its work, and the factor for the number of requests."""

    name: str
    work: Work
    share: float = 1.0
    prepare: Callable[[Side, int], None] = lambda _side, _requests: None


def redis_benchmark(*words: str, pipeline: int = 1, clients: int = CLIENTS) -> Work:
    """A work that redis-benchmark does."""

    def run(side: Side, requests: int) -> float:
        command = ["redis-benchmark", "-p", str(side.port), "-q", "-n", str(requests)]
        command += ["-c", str(clients), "-P", str(pipeline), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=ROUND_SECONDS_MAX
        )
        return float(RATE.findall(done.stdout)[-1])

    return run


def present_peers() -> list[Program]:
    """The other servers that are installed."""
    return [program for program in PEERS if program.path_or_none() is not None]


@contextmanager
def running_sides(*settings: str, peers: Sequence[Program] = PEERS) -> Iterator[list[Side]]:
    """penstock and its peers, with the same settings."""
    with ExitStack() as stack:
        ours = stack.enter_context(running_penstock(*settings, "--compat-version", "7.0"))
        ports = {"penstock": ours.port}
        for program in peers:
            server = stack.enter_context(running_redis(*settings, program=program))
            ports[program.title] = server.port
        yield [
            Side(name, port, redis.Redis(port=port).info("server")["process_id"])
            for name, port in ports.items()
        ]


def measure(lines: Sequence[Line], sides: Sequence[Side], requests: int, taken: Taken) -> None:
    """Run one round: measure each line on each side. The next round begins with another side."""
    for line in lines:
        rounds = taken.setdefault(line.name, [])
        first = len(rounds) % len(sides)
        found = {side: _figures(line, side, requests) for side in (*sides[first:], *sides[:first])}
        rounds.append([found[side] for side in sides])


def _figures(line: Line, side: Side, requests: int) -> Figures:
    count = max(1, int(requests * line.share))
    line.prepare(side, count)
    before, (user, kernel) = cpu_seconds(side.pid), user_and_kernel(side.pid)
    per_second = line.work(side, count)
    cpu_us = (cpu_seconds(side.pid) - before) / count * 1e6
    after = user_and_kernel(side.pid)
    with redis.Redis(port=side.port) as client:
        client.delete("added", "kept", "pairs", "key", "list")
    return Figures(per_second, cpu_us, after[0] - user, after[1] - kernel)


def head_of(names: Sequence[str]) -> list[str]:
    """The head of the table, for penstock and the servers with these names."""
    first, *others = names
    return [
        *("work", "penstock/s", f"{first}/s", "ratio", "CPU", f"{first}'s CPU", "CPU ratio"),
        *(f"{name}: ratio, CPU ratio" for name in others),
    ]


def rows_of(taken: Taken) -> Rows:
    """The rows of the table."""
    return [[name, *_cells(rounds)] for name, rounds in taken.items()]


def _cells(rounds: list[list[Figures]]) -> list[str]:
    def median(pick: Callable[[list[Figures]], float]) -> float:
        return statistics.median(map(pick, rounds))

    def faster(peer: int) -> str:
        return f"{median(lambda one: one[0].per_second / one[peer].per_second):.2f}x"

    def cheaper(peer: int) -> str:
        return f"{median(lambda one: one[peer].cpu_us / one[0].cpu_us):.2f}x"

    def rate(side: int) -> str:
        return f"{median(lambda one: one[side].per_second):,.0f}"

    def cost(side: int) -> str:
        return f"{median(lambda one: one[side].cpu_us):.2f} µs"

    others = (f"{faster(peer)}, {cheaper(peer)}" for peer in range(2, len(rounds[0])))
    return [rate(0), rate(1), faster(1), cost(0), cost(1), cheaper(1), *others]


def split_table(taken: Taken, peer: str, lines: Sequence[str]) -> tuple[list[str], Rows]:
    """Where the CPU time of some lines goes, in penstock and in the first of its peers."""
    head = ["CPU of one command", "penstock", "kernel", peer, "kernel", "ratio without the kernel"]
    rows = []
    for name in lines:
        own, kernel = _split([one[0] for one in taken[name]])
        theirs, their_kernel = _split([one[1] for one in taken[name]])
        shown = [f"{us:.2f} µs" for us in (own, kernel, theirs, their_kernel)]
        rows.append([name, *shown, f"{theirs / own:.1f}x"])
    return head, rows


def _split(runs: list[Figures]) -> tuple[float, float]:
    """The microseconds of a command in the server itself and in the kernel: ticks of all runs."""
    whole = statistics.median(one.cpu_us for one in runs)
    user, kernel = sum(one.user for one in runs), sum(one.kernel for one in runs)
    return whole * user / max(1, user + kernel), whole * kernel / max(1, user + kernel)
