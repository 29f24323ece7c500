"""Measures workers beside taskiq, dramatiq, Celery, arq and rq: empty jobs, waiting, idle workers, a kill -9.

    python benchmarks/workers.py [--rounds 3] [--jobs 5000] [--only penstock taskiq] [--write]

All libraries use the same redis-server, without a disk, and one worker process with its default settings.
penstock also runs on a penstock server, and on an embedded database in a directory, which syncs. A round of a
library: send the jobs, start the worker, and take the time from the first job to the last. The libraries take
turns; the tables show medians over the rounds. CPU is that of the worker and its children. For the waiting
time, jobs are sent to a worker at 100 a second.

For the kill, 200 jobs of 10 ms run; the worker gets a kill -9 after 50 of them and is started again. Jobs
that did not run within 45 seconds count as not back: some libraries give them back later, after a time that
can be set. Jobs that ran twice count as repeated.

The libraries are installed into build/peers. `--write` writes the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import redis
from _tables import machine_line, write_section
from rich.console import Console
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import running_redis  # noqa: E402

JOBS_FOLDER = ROOT / "benchmarks" / "worker_peers"
PEERS_FOLDER = ROOT / "build" / "peers"
TICKS = os.sysconf("SC_CLK_TCK")
WAIT_SECONDS_MAX = 120.0
SETTLE_SECONDS = 2.0  # the last jobs have run, and are not yet settled
IDLE_SECONDS = 10.0
WAITING_RATE = 100
WAITING_JOBS = 500
KILL_JOBS = 200
KILL_AFTER = 50
KILL_JOB_SECONDS = 0.01
BACK_SECONDS_MAX = 45.0


REDIS, PENSTOCK, EMBEDDED = "redis", "penstock", "embedded"


@dataclass(frozen=True, slots=True)
class Library:
    """A library: its module in worker_peers, its worker's command, and what pip installs for it."""

    name: str
    module: str
    command: tuple[str, ...]
    packages: tuple[str, ...]
    place: str = REDIS


LIBRARIES = (
    Library(
        "penstock.work on Redis", "penstock_jobs", ("penstock", "worker", "penstock_jobs:app"), ()
    ),
    Library(
        *("penstock.work on penstock", "penstock_jobs"),
        *(("penstock", "worker", "penstock_jobs:app"), ()),
        place=PENSTOCK,
    ),
    Library(
        *("penstock.work embedded", "penstock_jobs"),
        *(("penstock", "worker", "penstock_jobs:app"), ()),
        place=EMBEDDED,
    ),
    Library(
        *("taskiq", "taskiq_jobs", ("taskiq", "worker", "taskiq_jobs:broker", "-w", "1")),
        ("taskiq==0.13.0", "taskiq-redis==1.2.4"),
    ),
    Library(
        *("dramatiq", "dramatiq_jobs", ("dramatiq", "dramatiq_jobs", "-p", "1")),
        ("dramatiq[redis]==2.2.1",),
    ),
    Library(
        *("Celery", "celery_jobs"),
        ("celery", "-A", "celery_jobs", "worker", "-c", "1", "--loglevel", "ERROR"),
        ("celery[redis]==5.7.0",),
    ),
    Library("arq", "arq_jobs", ("arq", "arq_jobs.WorkerSettings"), ("arq==0.28.0",)),
    Library("rq", "rq_jobs", ("rq", "worker", "--quiet", "--url", "{url}"), ("rq==2.12.0",)),
)


@dataclass(slots=True)
class Speed:
    """What a round measured."""

    jobs_per_second: float
    cpu_ms_per_1000: float
    idle_commands_per_second: float | None  # None without a server


@dataclass(slots=True)
class Kill:
    """What a kill -9 did to the jobs."""

    not_back: int
    repeated: int


class Bench:
    """One library on one server, with a file that its jobs write to."""

    def __init__(self, library: Library, port: int, folder: Path, **settings: float) -> None:
        """`settings` of the jobs: job_seconds, jobs_rate."""
        self._library = library
        self._client = redis.Redis(port=port)
        self._client.flushall()
        self._done = folder / "done"
        self._done.write_bytes(b"")
        self._url = f"redis://127.0.0.1:{port}/0"
        if library.place == EMBEDDED:
            shutil.rmtree(folder / "data", ignore_errors=True)
            self._url = f"file:{folder / 'data'}"
        self._programs = programs_of(library)
        self._environment = os.environ | {
            "JOBS_URL": self._url,
            "JOBS_DONE": str(self._done),
            "PYTHONPATH": str(JOBS_FOLDER),
            **{name.upper(): str(value) for name, value in settings.items()},
        }

    def send(self, count: int) -> None:
        subprocess.run(
            [self._programs / "python", JOBS_FOLDER / f"{self._library.module}.py", str(count)],
            env=self._environment,
            check=True,
            capture_output=True,
        )

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """A running worker, which is killed at the end with its children."""
        name, *words = (word.format(url=self._url) for word in self._library.command)
        process = subprocess.Popen(
            [self._programs / name, *words],
            env=self._environment,
            cwd=JOBS_FOLDER,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill(process)

    def numbers(self) -> list[int]:
        return [int(line) for line in self._done.read_bytes().split()]

    def count(self) -> int:
        return self._done.read_bytes().count(b"\n")

    def wait_for(self, count: int, seconds_max: float = WAIT_SECONDS_MAX) -> float | None:
        """When this many jobs were done, or None if that takes too long."""
        deadline = time.monotonic() + seconds_max
        while time.monotonic() < deadline:
            if self.count() >= count:
                return time.monotonic()
            time.sleep(0.002)
        return None

    def wait_for_all(self, count: int) -> float:
        """When this many jobs were done. If that takes too long, the figures would say nothing."""
        at = self.wait_for(count)
        if at is None:
            raise SystemExit(f"{self._library.name}: {self.count()} of {count} jobs ran")
        return at

    def idle_commands_per_second(self) -> float | None:
        """What an idle worker sends to the server, if there is one."""
        if self._library.place == EMBEDDED:
            return None
        before = self._commands()
        time.sleep(IDLE_SECONDS)
        return (self._commands() - before - 1) / IDLE_SECONDS

    def _commands(self) -> int:
        return int(self._client.info("stats")["total_commands_processed"])


def programs_of(library: Library) -> Path:
    """The folder with a library's programs. The library is installed on first use."""
    if not library.packages:
        return Path(sys.executable).parent
    folder = PEERS_FOLDER / library.module
    if not (folder / "installed").exists():
        print(f"installing {library.name}")
        venv.create(folder, with_pip=True, clear=True)
        python = str(folder / "bin" / "python")
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", *library.packages], check=True)
        (folder / "installed").touch()
    return folder / "bin"


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def cpu_seconds(session: int) -> float:
    """CPU time of all processes of a session, and of their children that have ended."""
    total = 0
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                total += sum(map(int, fields[11:15]))
    return total / TICKS


def measure(library: Library, port: int, jobs: int, folder: Path) -> Speed:
    bench = Bench(library, port, folder)
    bench.send(jobs)
    with bench.worker() as process:
        first = bench.wait_for_all(1)
        cpu = cpu_seconds(process.pid)
        begun = bench.count()
        last = bench.wait_for_all(jobs)
        cpu = cpu_seconds(process.pid) - cpu
        time.sleep(SETTLE_SECONDS)
        idle = bench.idle_commands_per_second()
    counted = max(1, jobs - begun)
    return Speed(counted / (last - first), cpu * 1e6 / counted, idle)


def measure_kill(library: Library, port: int, folder: Path) -> Kill:
    bench = Bench(library, port, folder, job_seconds=KILL_JOB_SECONDS)
    bench.send(KILL_JOBS)
    with bench.worker() as process:
        bench.wait_for_all(KILL_AFTER)
        kill(process)
    deadline = time.monotonic() + BACK_SECONDS_MAX
    with bench.worker():
        while len(set(bench.numbers())) < KILL_JOBS and time.monotonic() < deadline:
            time.sleep(0.1)
    runs = Counter(bench.numbers())
    return Kill(KILL_JOBS - len(runs), sum(count > 1 for count in runs.values()))


def measure_waiting(library: Library, port: int, folder: Path) -> list[int] | None:
    """How long jobs wait, in microseconds, rising; None for a database that only the worker can open."""
    if library.place == EMBEDDED:
        return None
    bench = Bench(library, port, folder, jobs_rate=WAITING_RATE)
    with bench.worker():
        bench.send(1)  # the worker is ready when it has run this
        bench.wait_for_all(1)
        bench.send(WAITING_JOBS)
        bench.wait_for_all(1 + WAITING_JOBS)
        return sorted(bench.numbers()[1:])


@contextmanager
def ports() -> Iterator[dict[str, int]]:
    """The port of the server of each place; an embedded database has none."""
    with running_redis() as theirs, running_penstock() as ours:
        yield {REDIS: theirs.port, PENSTOCK: ours.port, EMBEDDED: ours.port}


def median(speeds: list[Speed], name: str) -> float:
    return float(statistics.median(getattr(speed, name) for speed in speeds))


HEAD = [
    "library",
    "jobs/s",
    "beside it, penstock.work on Redis is",
    "CPU for 1,000 jobs",
    "waiting p50 / p99",
    "commands/s when idle",
    "not back after kill -9",
    "repeated",
]


def waiting_text(waits: list[int] | None) -> str:
    if not waits:
        return "-"
    half, most = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    return f"{half / 1000:,.1f} / {most / 1000:,.1f} ms"


def idle_text(speeds: list[Speed]) -> str:
    if speeds[0].idle_commands_per_second is None:
        return "-"
    return f"{median(speeds, 'idle_commands_per_second'):.1f}"


def rows_of(
    speeds: dict[str, list[Speed]], kills: dict[str, Kill], waits: dict[str, list[int] | None]
) -> list[list[str]]:
    ours = next(iter(speeds.values()))
    rows = []
    for name, measured in speeds.items():
        rate = median(measured, "jobs_per_second")
        ratios = (
            mine.jobs_per_second / theirs.jobs_per_second
            for mine, theirs in zip(ours, measured, strict=True)
        )
        rows.append(
            [
                name,
                f"{rate:,.0f}",
                f"{statistics.median(ratios):.1f}x",
                f"{median(measured, 'cpu_ms_per_1000'):,.0f} ms",
                waiting_text(waits[name]),
                idle_text(measured),
                str(kills[name].not_back),
                str(kills[name].repeated),
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--only", nargs="*", default=[], help="libraries, by the start of a name")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if build.KIND != "compiled":
        raise SystemExit("the installed build is interpreted: its figures say nothing")
    wanted = [
        library
        for library in LIBRARIES
        if not options.only or library.name.lower().startswith(tuple(options.only))
    ]
    for library in wanted:
        programs_of(library)
    speeds: dict[str, list[Speed]] = {library.name: [] for library in wanted}
    kills: dict[str, Kill] = {}
    waits: dict[str, list[int] | None] = {}
    with ports() as port, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for round_ in range(options.rounds):
            for library in wanted:
                jobs = options.jobs // 10 if library.name == "rq" else options.jobs
                speed = measure(library, port[library.place], jobs, folder)
                speeds[library.name].append(speed)
                print(f"round {round_ + 1}: {library.name} {speed.jobs_per_second:,.0f} jobs/s")
        for library in wanted:
            waits[library.name] = measure_waiting(library, port[library.place], folder)
            print(f"waiting: {library.name} {waiting_text(waits[library.name])}")
            kills[library.name] = measure_kill(library, port[library.place], folder)
            print(f"kill -9: {library.name} {kills[library.name]}")
    rows = rows_of(speeds, kills, waits)
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if options.write:
        measured = f"{options.jobs:,} jobs, {options.rounds} rounds; {machine_line()}"
        write_section(ROOT / "docs" / "performance.md", "workers", measured, [(HEAD, rows)])


if __name__ == "__main__":
    main()
