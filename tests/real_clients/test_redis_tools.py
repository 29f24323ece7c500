"""redis-cli and redis-benchmark work with penstock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import encode

END_SECONDS_MAX = 120
MASS = 20_000


def program(name: str) -> str:
    """The path of a Redis tool. Skips the test without it."""
    places = [os.environ.get("PATH", os.defpath), str(Path(sys.prefix, "bin"))]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        pytest.skip(f"no {name} on PATH")
    return found


@pytest.fixture(scope="module")
def running() -> Iterator[PenstockServer]:
    with running_penstock() as server:
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture
def server(running: PenstockServer) -> PenstockServer:
    with running.client() as client:
        client.flushall()
    return running


def cli(server: PenstockServer, *words: str, data: bytes = b"") -> str:
    """The output of redis-cli."""
    command = [program("redis-cli"), "-p", str(server.port), *words]
    done = subprocess.run(
        command, input=data, capture_output=True, timeout=END_SECONDS_MAX, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b"", done.stderr
    return done.stdout.decode()


def test_redis_cli_shows_entries(server: PenstockServer) -> None:
    assert cli(server, "XADD", "s", "1-1", "temp", "21", "humid", "60") == "1-1\n"
    assert cli(server, "XADD", "s", "2-1", "temp", "22") == "2-1\n"
    shown = '1) 1) "1-1"\n   2) 1) "temp"\n      2) "21"\n      3) "humid"\n      4) "60"\n'
    shown += '2) 1) "2-1"\n   2) 1) "temp"\n      2) "22"\n'
    assert cli(server, "--no-raw", "XRANGE", "s", "-", "+") == shown
    assert cli(server, "XRANGE", "s", "-", "+") == "1-1\ntemp\n21\nhumid\n60\n2-1\ntemp\n22\n"
    assert cli(server, "-3", "--json", "XREAD", "STREAMS", "s", "1-1") == (
        '{"s":[["2-1",["temp","22"]]]}\n'
    )
    assert cli(server, "-3", "--no-raw", "XREAD", "STREAMS", "s", "1-1").startswith('1# "s" => ')
    assert cli(server, "XADD", "s", "1-1", "k", "v").startswith(
        "ERR The ID specified in XADD is equal"
    )


def test_redis_cli_reads_commands_from_its_input(server: PenstockServer) -> None:
    lines = b'XADD s 1-1 k "a b\\x00"\nMULTI\nXLEN s\nEXEC\nXLEN s\nnonsense\n'
    assert cli(server, data=lines) == ("1-1\nOK\nQUEUED\n1\n1\nERR unknown command 'nonsense'\n\n")


def test_redis_cli_inserts_many_entries_by_pipe(server: PenstockServer) -> None:
    data = b"".join(
        encode([b"XADD", b"s", b"%d-0" % n, b"n", b"%d" % n]) for n in range(1, MASS + 1)
    )
    assert f"errors: 0, replies: {MASS}" in cli(server, "--pipe", data=data)
    assert cli(server, "XLEN", "s") == f"{MASS}\n"


def test_redis_cli_scans_all_keys(server: PenstockServer) -> None:
    with server.client() as client:
        for n in range(300):
            client.set(f"text:{n}", "x" * n)
            client.rpush(f"list:{n}", *range(1 + n % 5))
            client.xadd(f"stream:{n}", {"n": n})
    assert len(set(cli(server, "--scan").split())) == 900
    assert len(set(cli(server, "--scan", "--pattern", "list:*").split())) == 300
    assert "Sampled 900 keys in the keyspace" in cli(server, "--bigkeys")
    assert "Sampled 900 keys in the keyspace" in cli(server, "--memkeys")


def test_redis_cli_shows_statistics(server: PenstockServer) -> None:
    command = [program("redis-cli"), "-p", str(server.port), "--stat", "-i", "0.05"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().decode() for _ in range(5)]
        process.terminate()
    assert lines[0].startswith("------- data ------")
    assert lines[1].split() == ["keys", "mem", "clients", "blocked", "requests", "connections"]
    assert lines[2].split()[0] == "0"


def benchmark(server: PenstockServer, *words: str) -> list[str]:
    """Run redis-benchmark and return the names of its measurements."""
    command = [program("redis-benchmark"), "-p", str(server.port), "--csv", *words]
    done = subprocess.run(command, capture_output=True, timeout=END_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for wrong in (b"rror", b"WARN"):
        assert wrong not in done.stdout + done.stderr, done.stdout + done.stderr
    return [line.split('"')[1] for line in done.stdout.decode().splitlines()[1:]]


def test_redis_benchmark_measures_its_usual_lines(server: PenstockServer) -> None:
    lines = "ping,set,get,incr,lpush,rpush,lpop,rpop,mset,lrange_100"
    done = benchmark(server, "-n", "1000", "-t", lines)
    assert done[:8] == ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP"]
    assert done[8:] == [
        "RPOP",
        "LPUSH (needed to benchmark LRANGE)",
        "LRANGE_100 (first 100 elements)",
        "MSET (10 keys)",
    ]


@pytest.mark.parametrize(
    "options", [("-c", "1"), ("-P", "16"), ("-3", "-P", "16"), ("--threads", "2")]
)
def test_redis_benchmark_measures_streams(server: PenstockServer, options: tuple[str, ...]) -> None:
    base = ("-n", "1600", *options)
    benchmark(server, *base, "XADD", "s", "MAXLEN", "~", "500", "*", "k", "v")
    benchmark(server, *base, "XREAD", "COUNT", "10", "STREAMS", "s", "0")
    assert server.client().xlen("s") >= 500
