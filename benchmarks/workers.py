"""Measures workers beside taskiq, dramatiq, Celery, arq and rq: empty jobs, the idle worker, and a kill -9.

    python benchmarks/workers.py [--rounds 3] [--jobs 5000] [--only penstock taskiq] [--write]

All libraries use the same redis-server, without a disk, and one worker process with its default settings.
penstock also runs on a penstock server. A round of a library: send the jobs, start the worker, and take the
time from the first job to the last. The libraries take turns; the tables show medians over the rounds. CPU is
that of the worker and its children.

For the kill, 200 jobs of 10 ms run; the worker gets a kill -9 after 50 of them and is started again. Jobs
that did not run within 45 seconds count as not back: some libraries give them back later, after a time that
can be set. Jobs that ran twice count as repeated.

The libraries are installed into build/peers. `--write` writes the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
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
IDLE_SECONDS = 5.0
KILL_JOBS = 200
KILL_AFTER = 50
KILL_JOB_SECONDS = 0.01
BACK_SECONDS_MAX = 45.0


@dataclass(frozen=True, slots=True)
class Library:
    """A library: its module in worker_peers, its worker's command, and what pip installs for it."""

    name: str
    module: str
    command: tuple[str, ...]
    packages: tuple[str, ...]
    on_penstock: bool = False


LIBRARIES = (
    Library(
        "penstock.work on Redis", "penstock_jobs", ("penstock", "worker", "penstock_jobs:app"), ()
    ),
    Library(
        *("penstock.work on penstock", "penstock_jobs"),
        *(("penstock", "worker", "penstock_jobs:app"), ()),
        on_penstock=True,
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
    idle_commands_per_second: float


@dataclass(slots=True)
class Kill:
    """What a kill -9 did to the jobs."""

    not_back: int
    repeated: int


class Bench:
    """One library on one server, with a file that its jobs write to."""

    def __init__(self, library: Library, port: int, folder: Path, job_seconds: float = 0) -> None:
        self._library = library
        self._client = redis.Redis(port=port)
        self._client.flushall()
        self._done = folder / "done"
        self._done.write_bytes(b"")
        self._url = f"redis://127.0.0.1:{port}/0"
        self._programs = programs_of(library)
        self._environment = os.environ | {
            "JOBS_URL": self._url,
            "JOBS_DONE": str(self._done),
            "JOB_SECONDS": str(job_seconds),
            "PYTHONPATH": str(JOBS_FOLDER),
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

    def commands(self) -> int:
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
        first = bench.wait_for(1)
        cpu = cpu_seconds(process.pid)
        begun = bench.count()
        last = bench.wait_for(jobs)
        cpu = cpu_seconds(process.pid) - cpu
        if first is None or last is None:
            raise SystemExit(f"{library.name}: {bench.count()} of {jobs} jobs ran")
        before = bench.commands()
        time.sleep(IDLE_SECONDS)
        idle = (bench.commands() - before - 1) / IDLE_SECONDS
    counted = max(1, jobs - begun)
    return Speed(counted / (last - first), cpu * 1e6 / counted, idle)


def measure_kill(library: Library, port: int, folder: Path) -> Kill:
    bench = Bench(library, port, folder, KILL_JOB_SECONDS)
    bench.send(KILL_JOBS)
    with bench.worker() as process:
        bench.wait_for(KILL_AFTER)
        kill(process)
    deadline = time.monotonic() + BACK_SECONDS_MAX
    with bench.worker():
        while len(set(bench.numbers())) < KILL_JOBS and time.monotonic() < deadline:
            time.sleep(0.1)
    runs = Counter(bench.numbers())
    return Kill(KILL_JOBS - len(runs), sum(count > 1 for count in runs.values()))


@contextmanager
def ports() -> Iterator[dict[bool, int]]:
    """The port of a redis-server (False) and of a penstock server (True)."""
    with running_redis() as theirs, running_penstock() as ours:
        yield {False: theirs.port, True: ours.port}


def median(speeds: list[Speed], name: str) -> float:
    return float(statistics.median(getattr(speed, name) for speed in speeds))


HEAD = [
    "library",
    "jobs/s",
    "beside it, penstock.work on Redis is",
    "CPU for 1,000 jobs",
    "commands/s when idle",
    "not back after kill -9",
    "repeated",
]


def rows_of(speeds: dict[str, list[Speed]], kills: dict[str, Kill]) -> list[list[str]]:
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
                f"{median(measured, 'idle_commands_per_second'):.1f}",
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
    with ports() as port, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for round_ in range(options.rounds):
            for library in wanted:
                jobs = options.jobs // 10 if library.name == "rq" else options.jobs
                speed = measure(library, port[library.on_penstock], jobs, folder)
                speeds[library.name].append(speed)
                print(f"round {round_ + 1}: {library.name} {speed.jobs_per_second:,.0f} jobs/s")
        for library in wanted:
            kills[library.name] = measure_kill(library, port[library.on_penstock], folder)
            print(f"kill -9: {library.name} {kills[library.name]}")
    rows = rows_of(speeds, kills)
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if options.write:
        measured = f"{options.jobs:,} jobs, {options.rounds} rounds; {machine_line()}"
        write_section(ROOT / "docs" / "performance.md", "workers", measured, [(HEAD, rows)])


if __name__ == "__main__":
    main()
