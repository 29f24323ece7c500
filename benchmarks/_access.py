"""What TLS and ACL users cost: two tables of benchmarks/replication.py.

TLS is measured by the rate of XADD. An ACL user costs too little for that, so instructions are counted: the
server runs under valgrind's callgrind, which counts only between two marks.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis
from _tables import Rows

from tests.support.certificates import Authority
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import client_without_retries, free_port, running_redis

NAMES = ("penstock", "Redis")
START_SECONDS_MAX = 300.0  # valgrind is slow
COUNTED = 200_000  # logins, which are counted too, are few of them
PASSWORD = "secret"
USERS = {
    "the default user": (),
    "a user who may do everything": ("~*", "&*", "+@all"),
    "a user of some streams and commands": ("~s*", "+@stream", "+@connection"),
}


def rate(port: int, requests: int, *more: str) -> float:
    """XADDs per second of 50 clients."""
    words = ["redis-benchmark", "-p", str(port), "-q", "-n", str(requests), "-c", "50", *more]
    start = time.perf_counter()
    subprocess.run([*words, "XADD", "s", "*", "temp", "21"], check=True, stdout=subprocess.DEVNULL)
    return requests / (time.perf_counter() - start)


# --- TLS ---------------------------------------------------------------------------------------------


def tls_table(rounds: int, requests: int) -> tuple[list[str], Rows]:
    """XADD over plain connections and over TLS."""
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-tls-")))
        authority = Authority(folder)
        secure = ("--tls", "--cacert", str(authority.file))
        ports = {name: _serve(stack, name, authority) for name in NAMES}
        for title, depth in (("XADD", 1), ("XADD P64", 64)):
            taken: dict[tuple[str, bool], list[float]] = {}
            count = requests if depth > 1 else max(1, requests // 10)
            for _ in range(rounds):
                for name in NAMES:
                    for is_tls in (False, True):
                        words = ("-P", str(depth), *(secure if is_tls else ()))
                        found = rate(ports[name][is_tls], count, *words)
                        taken.setdefault((name, is_tls), []).append(found)
            rows.append([title, *(f"{statistics.median(one):,.0f}/s" for one in taken.values())])
    return ["50 clients", *(f"{name}, {how}" for name in NAMES for how in ("plain", "TLS"))], rows


def _serve(stack: ExitStack, name: str, authority: Authority) -> tuple[int, int]:
    """Start a server; return its plain port and its port for TLS."""
    pair = authority.issue(name)
    secure = free_port()
    words = ["--tls-port", str(secure), "--tls-auth-clients", "no"]
    words += ["--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key)]
    words += ["--tls-ca-cert-file", str(authority.file)]
    if name == "penstock":
        return stack.enter_context(running_penstock(*words)).port, secure
    return stack.enter_context(running_redis(*words)).port, secure


# --- Users -------------------------------------------------------------------------------------------


def has_callgrind() -> bool:
    """Whether instructions can be counted here."""
    return shutil.which("valgrind") is not None and shutil.which("callgrind_control") is not None


def acl_table() -> tuple[list[str], Rows]:
    """Instructions of the server for an XADD, by user."""
    found: dict[str, float] = {}
    with _counted_server() as (port, process, folder):
        with redis.Redis(port=port, socket_timeout=START_SECONDS_MAX) as client:
            for number, rules in enumerate(USERS.values()):
                if rules:
                    client.acl_setuser(f"u{number}", True, passwords=[f"+{PASSWORD}"], reset=True)
                    client.execute_command("ACL", "SETUSER", f"u{number}", *rules)
        _control(process, "--instr=on")
        for number, (name, rules) in enumerate(USERS.items()):
            login = ("--user", f"u{number}", "-a", PASSWORD) if rules else ()
            rate(port, COUNTED // 4, "-P", "64", *login)  # warm
            _control(process, "--zero")
            rate(port, COUNTED, "-P", "64", *login)
            _control(process, "--dump")
            found[name] = _last_total(folder) / COUNTED
    first = next(iter(found.values()))
    rows = [[name, f"{each:,.0f}", f"{each / first - 1:+.1%}"] for name, each in found.items()]
    return ["XADD P64 of penstock", "instructions per command", "more than default"], rows


@contextmanager
def _counted_server() -> Iterator[tuple[int, subprocess.Popen[bytes], Path]]:
    """Run `penstock serve` under callgrind, in memory."""
    with tempfile.TemporaryDirectory(prefix="penstock-callgrind-") as name:
        folder, port = Path(name), free_port()
        words = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
        ]  # the start takes long enough
        words += [f"--callgrind-out-file={folder}/out.%p"]
        words += [sys.executable, "-m", "penstock", "serve", "--port", str(port)]
        words += ["--dir", str(folder), "--appendonly", "no", "--save", ""]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=folder, env=_environment()
            )
        try:
            _wait_for(port, process)
            yield port, process, folder
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _environment() -> dict[str, str]:
    """PYTHONPATH with absolute paths: the server runs in another folder."""
    paths = [
        str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(":") if part
    ]
    return {**os.environ, "PYTHONPATH": ":".join(paths)}


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    with client_without_retries(port) as client:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                client.ping()
            except redis.RedisError:
                time.sleep(0.1)
            else:
                return
    raise RuntimeError("penstock does not start under valgrind")


def _control(process: subprocess.Popen[bytes], what: str) -> None:
    words = ["callgrind_control", what, str(process.pid)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _last_total(folder: Path) -> int:
    """The instructions in the newest dump."""
    newest = max(folder.glob("out.*.*"), key=lambda path: int(path.suffix[1:]))
    found = re.search(r"^(?:summary|totals): (\d+)", newest.read_text(), re.M)
    assert found is not None, f"{newest} has no total"
    return int(found[1])
