"""The types of the embedded database, as mypy sees them in a user's program."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
import penstock.aio
from penstock.embedded.group_methods import GroupMethods
from penstock.embedded.key_methods import KeyMethods
from tests.support.source_tree import PACKAGE

RIGHT = """
import asyncio
import datetime
from typing import assert_type

import penstock
import penstock.aio


def produce(db: penstock.Database, quantities: dict[str, int]) -> bytes:
    entry_id = db.xadd("orders", {"sku": "A1", "qty": 2, b"raw": 1.5})
    assert_type(entry_id, bytes)
    assert_type(db.xadd("orders", quantities, nomkstream=True), bytes | None)
    db.xadd(b"orders", {b"k": bytearray(b"v")}, id=entry_id, maxlen=1000)
    return entry_id


def consume(db: penstock.Database[str]) -> None:
    for stream, entries in db.xreadgroup("g", "c", {"orders": ">"}, block=1000):
        assert_type(stream, str)
        for entry_id, fields in entries:
            assert_type(fields, dict[str, str])
            with db.pipeline() as pipe:
                pipe.xack("orders", "g", entry_id).xadd("done", fields).execute()
    total: int = db.xlen("orders") + db.xinfo_stream("orders")["length"]
    total += db.xinfo_groups("orders")[0]["pending"] + db.xpending("orders", "g")["pending"]
    assert_type([row["times_delivered"] for row in db.xpending_range("s", "g", "-", "+", 9)], list[int])
    assert_type(db.xclaim("s", "g", "c", 0, ["1-0"]), list[tuple[str, dict[str, str]]])
    assert_type(db.xclaim("s", "g", "c", 0, ["1-0"], justid=True), list[str])
    next_id, claimed, deleted = db.xautoclaim("s", "g", "c", 0)
    assert_type((next_id, deleted), tuple[str, list[str]])
    db.xdel("s", *deleted)


def new_in_redis_8(db: penstock.Database[str], idle_ms: int) -> None:
    for _, claimed in db.xreadgroup("g", "c", {"s": ">"}, claim_min_idle_time=idle_ms, max_size=5):
        for entry_id, fields, idle, deliveries in claimed:
            assert_type((entry_id, fields), tuple[str, dict[str, str]])
            assert_type(idle + deliveries, int)
    assert_type(db.xdelex("s", "1-0", b"2-0", ref_policy="ACKED"), list[int])
    assert_type(db.xackdel("s", "g", "1-0"), list[int])
    assert_type(db.xnack("s", "g", "FAIL", "1-0", retrycount=3, force=True), int)
    assert_type(db.xcfgset("s", idmp_duration=60, idmp_maxsize=1000), str)
    assert_type(db.xadd("s", {"k": "v"}, idmp=("producer", b"message")), str)
    db.xadd("s", {"k": "v"}, maxlen=5, ref_policy="DELREF", idmpauto="producer")
    db.xtrim("s", maxlen=5, ref_policy="KEEPREF")
    assert_type(db.xread({"s": "0"}, max_count=5), list[tuple[str, list[tuple[str, dict[str, str]]]]])
    db.pipeline().xackdel("s", "g", "1-0").xdelex("s", "2-0").xnack("s", "g", "FAIL", "3-0").execute()
    db.pipeline().xreadgroup("g", "c", {"s": ">"}, claim_min_idle_time=5).xcfgset("s", 5).execute()


def keys(db: penstock.Database) -> bool:
    assert_type(db.keys(), list[bytes])
    cursor, found = db.scan(match="orders:*")
    assert_type(found, list[bytes])
    assert_type(list(db.scan_iter()), list[bytes])
    return db.expire("s", datetime.timedelta(days=1)) and db.ttl("s") > 0


async def asynchronous() -> None:
    async with penstock.aio.open("data", decode_responses=True) as db:
        assert_type(await db.xadd("s", {"k": "v"}), str)
        assert_type(await db.xlen("s"), int)
        async with db.pipeline() as pipe:
            await pipe.xack("s", "g", "1-0").xadd("s", {"k": "v"}).execute()
        assert_type(await db.xackdel("s", "g", "1-0", ref_policy="ACKED"), list[int])
        for _, claimed in await db.xreadgroup("g", "c", {"s": ">"}, claim_min_idle_time=5):
            for _, _, idle, _ in claimed:
                assert_type(idle, int)
    assert_type(await penstock.aio.open(), penstock.aio.AsyncDatabase[bytes])


with penstock.open("data") as opened:
    produce(opened, {"qty": 2})
consume(penstock.open(decode_responses=True))
asyncio.run(asynchronous())
"""

FIRST_LINES = """import penstock
db = penstock.open()
"""
# Each of these lines is an error.
WRONG = """db.xadd("s", {"k": None})
db.xadd("s", ["k", "v"])
db.xadd(None, {"k": "v"})
db.xlen()
db.xrange("s", count="5")
db.xrange("s")[0][1]["k"]
text: str = db.xadd("s", {"k": "v"})
sure: bytes = db.xadd("s", {"k": "v"}, nomkstream=True)
db.xinfo_stream("s")["size"]
db.xread({"s": "0"})[0][1].decode()
db.xpend("s")
db.xdelex("s", "1-0", ref_policy="SOMETIMES")
db.xnack("s", "g", "LATER", "1-0")
db.xadd("s", {"k": "v"}, idmp="message")
db.pipeline().xadd("s", {}).xlen(None)
penstock.open(decode_responses="yes")
other: penstock.Database[str] = db
"""


def mypy(program: Path) -> str:
    """What mypy says about a program that imports the source tree."""
    pytest.importorskip("mypy")
    settings = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--hide-error-context"]
    command += [f"--cache-dir={program.parent / 'cache'}", str(program)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_mypy_finds_nothing_in_a_right_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RIGHT)
    assert mypy(program).startswith("Success")


def test_mypy_reports_every_wrong_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FIRST_LINES + WRONG)
    reported = {int(line) for line in re.findall(r"program\.py:(\d+): error: ", mypy(program))}
    first = FIRST_LINES.count("\n") + 1
    assert reported == set(range(first, first + WRONG.count("\n")))


def public_methods() -> dict[str, Any]:
    owners = [penstock.Database, GroupMethods, KeyMethods]
    return {
        name: method
        for owner in owners
        for name, method in vars(owner).items()
        if not name.startswith("_") and callable(method)
    }


def test_no_public_method_has_an_untyped_argument_or_result() -> None:
    methods = public_methods()
    assert len(methods) > 40
    for name, method in methods.items():
        signature = inspect.signature(method)
        types = [p.annotation for p in signature.parameters.values() if p.name != "self"]
        for annotation in [*types, signature.return_annotation]:
            assert annotation is not inspect.Parameter.empty, name
            assert "Any" not in re.findall(r"\w+", str(annotation)), name


def test_a_class_can_be_subscripted_at_run_time() -> None:
    assert issubclass(penstock.Database[str], penstock.Database)
    assert penstock.aio.AsyncDatabase[str].__name__ == "AsyncDatabase"
