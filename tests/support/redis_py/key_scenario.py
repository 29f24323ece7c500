"""A program that uses the key methods and the pipelines of redis-py's client, and notes every result.

It runs on `redis.Redis` and on `penstock.open()` alike, as scenario.py does for the stream methods. The order
of keys and the cursors of a scan are a server's own choice, so keys are sorted.
"""

from __future__ import annotations

import datetime
from typing import Any

from tests.support.redis_py.scenario import Notebook, fill

KEY_METHODS = (
    *("keys", "scan", "scan_iter", "exists", "type", "touch", "dbsize"),
    *("delete", "unlink", "rename", "renamenx", "flushdb"),
    *("expire", "pexpire", "expireat", "pexpireat", "persist"),
    *("ttl", "pttl", "expiretime", "pexpiretime"),
)
FUTURE_S = 4_102_444_800  # the year 2100


def run(db: Any) -> list[str]:
    """Run the program; return one line for each call."""
    notes = Notebook()
    for step in (
        *(finding, changing, expiring, expiry_options, refused),
        *(transactions, failing_transactions, plain_pipelines, watching),
        *(blocking_in_a_pipeline, misuse_of_pipelines, flushing),
    ):
        notes.begin(step.__name__)
        step(db, notes)
    return notes.lines


# --- Keys ------------------------------------------------------------------------------------------------


def finding(db: Any, note: Notebook) -> None:
    note(db.dbsize)
    note(db.keys)
    note(db.scan)
    for name in ("orders:1", "orders:2", "order?", b"raw\xc3\xa9", 5):
        fill(db, name, "1-0")
    note(db.dbsize)
    for pattern in ("*", "orders:*", "orders:[1-1]", r"order\?", "nothing", b"raw*", 5):
        note(lambda pattern: sorted(db.keys(pattern)), pattern)
    note(lambda: type(db.keys()))
    note(lambda: sorted(db.scan_iter()))
    note(lambda: sorted(db.scan_iter(match="orders:*", count=1)))
    note(lambda: sorted(db.scan_iter("*", 2, "stream")))
    note(lambda: sorted(db.scan_iter(_type="string")))
    cursor, found = db.scan(0, count=1000)
    note(lambda: (cursor, sorted(found)))
    note(lambda: [type(part) for part in db.scan("0", "orders*", 1000, "STREAM")])
    note(db.exists, "orders:1", "orders:2", "orders:1", "nothing")
    note(db.touch, "orders:1", "nothing")
    note(db.type, "orders:1")
    note(db.type, "nothing")


def changing(db: Any, note: Notebook) -> None:
    fill(db, "a", "1-0")
    fill(db, "b", "2-0")
    note(db.rename, "a", "c")
    note(db.renamenx, "b", "c")
    note(db.renamenx, "b", "d")
    note(db.rename, "c", "d")
    note(db.xrange, "d")
    note(db.delete, "d", "c", "b")
    note(db.delete, "d")
    note(db.unlink, "orders:1", "nothing")
    note(db.exists, "orders:1")


# --- Expiry ----------------------------------------------------------------------------------------------


def expiring(db: Any, note: Notebook) -> None:
    fill(db, "e", "1-0")
    note(db.ttl, "e")
    note(db.pttl, "e")
    note(db.ttl, "nothing")
    note(db.expiretime, "e")
    note(db.pexpiretime, "nothing")
    note(db.expire, "e", 1000)
    note(lambda: 900 < db.ttl("e") <= 1000)
    note(db.pexpire, "e", datetime.timedelta(minutes=1))
    note(lambda: 50_000 < db.pttl("e") <= 60_000)
    note(db.expire, "e", datetime.timedelta(hours=1))
    note(lambda: 3500 < db.ttl("e") <= 3600)
    note(db.expireat, "e", FUTURE_S)
    note(db.expiretime, "e")
    note(db.pexpireat, "e", FUTURE_S * 1000 + 5)
    note(db.pexpiretime, "e")
    note(db.expireat, "e", datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    note(db.pexpireat, "e", when=datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    note(db.expiretime, "e")
    note(db.persist, "e")
    note(db.persist, "e")
    note(db.expire, "nothing", 5)
    note(db.expire, "e", -1)
    note(db.exists, "e")


def expiry_options(db: Any, note: Notebook) -> None:
    fill(db, "o", "1-0")
    note(db.expire, "o", 1000, xx=True)
    note(db.expire, "o", 1000, gt=True)
    note(db.expire, "o", 1000, nx=True)
    note(db.expire, "o", 1000, nx=True)
    note(db.pexpire, "o", 500_000, gt=True)
    note(db.pexpire, "o", 500_000, lt=True)
    note(db.expireat, "o", FUTURE_S, False, True, True)
    note(db.pexpireat, "o", FUTURE_S, lt=True)
    note(db.expire, "o", 1000, nx=True, xx=True)
    note(db.expire, "o", 1000, gt=True, lt=True)


def refused(db: Any, note: Notebook) -> None:
    fill(db, "s", "1-0")
    note(db.delete)
    note(db.exists)
    note(db.rename, "nothing", "s")
    note(db.renamenx, "nothing", "s")
    note(db.expire, "s", "soon")
    note(db.expire, "s", 1.5)
    note(db.expire, "s", 2**62)
    note(db.scan, "oops")
    note(db.scan, 0, count=0)
    note(db.scan, 0, count="many")
    for value in (None, True, ["a"]):
        note(db.delete, value)
        note(db.keys, value)
        note(db.type, value)
        note(db.expire, "s", value)
        note(db.rename, "s", value)


# --- Pipelines -------------------------------------------------------------------------------------------


def shown(found: list[Any]) -> list[Any]:
    """The results of a pipeline, with refusals by their text."""
    return [f"refusal: {item}" if isinstance(item, Exception) else item for item in found]


def transactions(db: Any, note: Notebook) -> None:
    db.flushdb()
    fill(db, "jobs", "1-0", "2-0")
    with db.pipeline() as pipe:
        note(pipe.execute)
        note(pipe.__len__)
        pipe.xgroup_create("jobs", "g", "0").xreadgroup("g", "c", {"jobs": ">"})
        pipe.xack("jobs", "g", "1-0")
        pipe.xadd("done", {"job": "1-0"}, id="1-0")
        note(pipe.__len__)
        note(db.exists, "done")
        note(pipe.execute)
        note(pipe.__len__)
        note(pipe.execute)
        note(lambda: bool(pipe))
    with db.pipeline(transaction=True) as pipe:
        pipe.xpending("jobs", "g").xgroup_setid("jobs", "g", "0").xgroup_destroy("jobs", "other")
        pipe.xgroup_createconsumer("jobs", "g", "d").xgroup_delconsumer("jobs", "g", "d")
        pipe.xrange("jobs").xrevrange("jobs", count=1).xread({"jobs": "0"}, count=1).xlen("jobs")
        pipe.xclaim("jobs", "g", "c", 0, ["2-0"], justid=True)
        pipe.xautoclaim("jobs", "g", "c", 0).xinfo_stream("jobs").xinfo_groups("jobs")
        pipe.type("jobs").exists("jobs").rename("done", "did").renamenx("did", "jobs")
        pipe.expire("did", 1000).persist("did").ttl("did").keys("j*").dbsize().scan(match="jo*")
        pipe.xtrim("jobs", maxlen=1, approximate=False).xdel("jobs", "2-0").delete("jobs", "did")
        note(pipe.execute)
        pipe.xadd("queued", {"a": "b"}, id="1-0")
        pipe.reset()
        note(pipe.__len__)
        note(pipe.execute)
    note(db.exists, "queued")


def failing_transactions(db: Any, note: Notebook) -> None:
    fill(db, "f", "5-0")
    long = "x" * 200
    for raise_on_error in (True, False):
        pipe = db.pipeline()
        pipe.xadd("f", {"a": "b"}).xadd("f", {"a": long}, id="1-0").xlen("f").rename("no", "key")
        note(lambda raising, pipe=pipe: shown(pipe.execute(raising))[1:], raise_on_error)
        note(db.xlen, "f")
        pipe.xadd("f", {"a": "b"}).delete().xack("f", "g")
        note(lambda raising, pipe=pipe: shown(pipe.execute(raising)), raise_on_error)
        note(db.xlen, "f")
        note(pipe.__len__)
    pipe = db.pipeline()
    note(pipe.xadd, "f", {})
    note(pipe.__len__)


def plain_pipelines(db: Any, note: Notebook) -> None:
    fill(db, "p", "5-0")
    for raise_on_error in (True, False):
        with db.pipeline(transaction=False) as pipe:
            pipe.xlen("p").xadd("p", {"a": "b"}, id="1-0").delete().xadd("p", {"a": "b"}, "6-*")
            note(lambda raising, pipe=pipe: shown(pipe.execute(raising)), raise_on_error)
            note(db.xlen, "p")


def watching(db: Any, note: Notebook) -> None:
    fill(db, "w", "1-0")
    with db.pipeline() as pipe:
        note(pipe.watch, "w", "other")
        note(pipe.xlen, "w")  # runs at once
        note(pipe.multi)
        pipe.xadd("w", {"a": "b"}, id="2-0")
        note(pipe.execute)
        note(pipe.watch, "w")
        fill(db, "w", "3-0")
        pipe.multi()
        pipe.xadd("w", {"a": "b"}, id="4-0")
        note(pipe.execute)
        note(db.xlen, "w")
        pipe.watch("w")
        db.delete("w")
        note(pipe.execute)
        pipe.watch("w")
        fill(db, "w", "3-0")
        note(pipe.unwatch)
        pipe.xlen("w")
        note(pipe.execute)
        pipe.watch("w")
        fill(db, "other", "1-0")
        note(pipe.execute)
        note(pipe.unwatch)


def blocking_in_a_pipeline(db: Any, note: Notebook) -> None:
    fill(db, "k", "1-0")
    db.xgroup_create("k", "g", "$")
    with db.pipeline() as pipe:
        pipe.xread({"k": "$"}, block=0).xreadgroup("g", "c", {"k": ">"}, block=0)
        pipe.xread({"k": "0"}, block=0)
        note(pipe.execute)


def misuse_of_pipelines(db: Any, note: Notebook) -> None:
    pipe = db.pipeline()
    pipe.xlen("k")
    note(pipe.multi)
    pipe.reset()
    pipe.multi()
    note(pipe.multi)
    note(pipe.watch, "k")
    pipe.reset()
    note(pipe.execute)


def flushing(db: Any, note: Notebook) -> None:
    note(db.flushdb)
    note(db.dbsize)
    fill(db, "again", "1-0")
    note(db.flushdb, asynchronous=True)
    note(db.exists, "again")
