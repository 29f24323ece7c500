"""A program that uses every stream method of redis-py's client, and notes every result.

It runs on `redis.Redis` and on `penstock.open()` alike. A line of the notebook has a call and the repr of its
result, so differences between list and tuple, bytes and text, bool and int, or in the order of keys show. Ids
are given, so they are the same everywhere; times are rounded to minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

MINUTE_MS = 60_000
TIMES_MS = ("time_since_delivered", "idle", "inactive")  # durations
CLOCK_TIMES_MS = ("seen-time", "active-time")  # moments


def run(db: Any) -> list[str]:
    """Run the program; return one line for each call."""
    notes = Notebook()
    for step in (
        *(adding, odd_values, trimming, deleting, ranges, reading),
        *(groups, group_reading, pending, claiming, autoclaiming, looking),
        *(refused_by_the_server, refused_by_the_client, newer_options),
    ):
        notes.begin(step.__name__)
        step(db, notes)
    return notes.lines


class Notebook:
    """Calls and their results."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._step = ""

    def begin(self, step: str) -> None:
        self._step = step

    def __call__(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method, note its result or its error, and return the result."""
        name = getattr(method, "__name__", "")
        named = [f"{key}={value!r}" for key, value in options.items()]
        given = re.sub(" at 0x[0-9a-f]+", "", ", ".join([*map(repr, args), *named]))
        try:
            found = method(*args, **options)
        except Exception as error:  # noqa: BLE001 - any error must be the same for both
            # A server's refusal is redis.ResponseError there and CommandError here.
            is_ours = type(error).__module__.partition(".")[0] in ("redis", "penstock")
            kind = type(error).__name__
            kind = "refusal" if is_ours and kind != "DataError" else kind
            self._note(name, given, f"{kind}: {error}")
            return None
        self._note(name, given, repr(_without_times(found)))
        return found

    def _note(self, name: str, given: str, found: str) -> None:
        found = re.sub(r"\b1\d{12}-\d+", "a generated id", found)
        self.lines.append(f"{self._step}: {name}({given}) -> {found}")


def _without_times(value: Any, key: Any = None) -> Any:
    """The same value, with times that differ from run to run made equal."""
    name = key.decode() if isinstance(key, bytes) else key
    if isinstance(value, int) and name in TIMES_MS:
        return f"{round(value / MINUTE_MS)} minutes"
    if isinstance(value, int) and name in CLOCK_TIMES_MS:
        return "a time" if value > 10**12 else value
    if isinstance(value, dict):
        return {name: _without_times(item, name) for name, item in value.items()}
    if isinstance(value, tuple) and len(value) == 4 and isinstance(value[1], dict):
        # An entry of a read that claims: id, fields, idle time, number of deliveries.
        return (*value[:2], f"{round(value[2] / MINUTE_MS)} minutes", value[3])
    if isinstance(value, (list, tuple)):
        if name == "pending" and all(isinstance(row, list) for row in value):
            # A row of XINFO STREAM FULL: id, [consumer,] time, count.
            return [
                [*row[:-2], "a time" if row[-2] > 10**12 else row[-2], row[-1]] for row in value
            ]
        return type(value)(_without_times(item) for item in value)
    return value


def fill(db: Any, key: str | bytes | int, *entry_ids: str) -> None:
    for entry_id in entry_ids:
        db.xadd(key, {"n": entry_id}, id=entry_id)


# --- Adding and removing ---------------------------------------------------------------------------------


def adding(db: Any, note: Notebook) -> None:
    note(db.xadd, "s", {"sku": "A1", "qty": 2}, id="1-0")
    note(db.xadd, "s", {"sku": "A2"}, "1-1")
    note(db.xadd, b"s", {b"sku": b"A3", b"qty": 3}, id=b"2")
    note(db.xadd, "s", {"sku": "A4"}, id="2-*")
    note(db.xadd, "s", {"sku": "A5"}, id=3)
    note(db.xadd, "missing", {"a": "b"}, id="1-0", nomkstream=True)
    note(db.xadd, "s", {"a": "b"}, id="4-0", nomkstream=True)
    note(db.xadd, "s", {"a": "b"}, id="5-0", maxlen=4, approximate=False)
    note(db.xadd, "s", {"a": "b"}, id="6-0", maxlen=1)
    note(db.xadd, "s", {"a": "b"}, id="7-0", minid="4-0", approximate=False)
    note(db.xadd, "s", {"a": "b"}, id="8-0", minid="8-0", limit=1)
    note(db.xadd, "s", {"a": "b"}, id="9-0", maxlen=0, approximate=False)
    note(db.xlen, "s")
    note(db.xlen, "missing")
    first, second = db.xadd("auto", {"a": "b"}), db.xadd("auto", {"a": "b"}, id="*")
    note(lambda: (type(first).__name__, len(first) > 13, second != first))


def odd_values(db: Any, note: Notebook) -> None:
    values = ["", "é", b"\x00\x01", 0, -5, 2**70, 1.5, 1e300, float("inf"), "x" * 5000]
    for n, value in enumerate(values, 1):
        note(db.xadd, "odd", {"value": value}, id=f"{n}-0")
    note(db.xadd, "odd", {"buffer": bytearray(b"ab"), "view": memoryview(b"cd")}, id="50-0")
    note(db.xadd, "odd", {"": "", 7: 7, 1.25: b""}, id="51-0")
    note(db.xrange, "odd")
    for value in (None, True, ["a"], {"a": 1}, object):
        note(db.xadd, "odd", {"value": value}, id="60-0")
        note(db.xadd, "odd", {value if value.__hash__ else "k": "v"}, id="60-0")
    note(db.xadd, None, {"a": "b"}, id="60-0")
    note(db.xadd, "odd", {"a": "b"}, id=None)
    note(db.xlen, "odd")
    note(db.xadd, "", {"a": "b"}, id="1-0")
    note(db.xadd, 5, {"a": "b"}, id="1-0")
    note(db.xrange, "5")


def trimming(db: Any, note: Notebook) -> None:
    fill(db, "t", *(f"{n}-0" for n in range(1, 13)))
    note(db.xtrim, "t", maxlen=11)
    note(db.xtrim, "t", maxlen=11, approximate=False)
    note(db.xtrim, "t", maxlen=10, approximate=False)
    note(db.xtrim, "t", minid="4-0", approximate=False)
    note(db.xtrim, "t", minid=5, approximate=False)
    note(db.xtrim, "t", minid="100-0", limit=2)
    note(db.xtrim, "t", maxlen=2, limit=0)
    note(db.xtrim, "t", maxlen=2, approximate=False, limit=3)
    note(db.xtrim, "missing", maxlen=0)
    note(db.xinfo_stream, "t")
    note(db.xtrim, "t", maxlen=0, approximate=False)
    note(db.xinfo_stream, "t")


def deleting(db: Any, note: Notebook) -> None:
    fill(db, "d", "1-0", "1-1", "2-0", "3-0")
    note(db.xdel, "d", "1-0", "3-0", "1-0", "9-9")
    note(db.xdel, "d", b"2")
    note(db.xdel, "d", 5)
    note(db.xdel, "missing", "1-0")
    note(db.xdel, "d")
    note(db.xinfo_stream, "d")


# --- Reading -----------------------------------------------------------------------------------------------


def ranges(db: Any, note: Notebook) -> None:
    fill(db, "r", "1-0", "1-1", "2-0", "3-0")
    db.xdel("r", "2-0")
    note(db.xrange, "r")
    note(db.xrevrange, "r")
    note(db.xrange, "r", "1", "1")
    note(db.xrange, "r", min="(1-0", max="(3-0")
    note(db.xrange, "r", "-", "+", 2)
    note(db.xrange, "r", count=1)
    note(db.xrevrange, "r", "3", "1-1")
    note(db.xrevrange, "r", max="(3-0", min="-", count=1)
    note(db.xrange, "r", 5, 6)
    note(db.xrange, "missing")


def reading(db: Any, note: Notebook) -> None:
    note(db.xread, {"r": "0"})
    note(db.xread, {"r": "1-0"}, count=1)
    note(db.xread, {"r": 1, "d": "0", "missing": "0"}, 10)
    note(db.xread, {b"r": b"3-0"})
    note(db.xread, {"r": "$"})
    note(db.xread, {"r": "$", "missing": 0}, block=1)
    note(db.xread, {"r": "0"}, block=0)
    note(db.xread, streams={"r": "0"}, count=1, block=1)


# --- Groups ------------------------------------------------------------------------------------------------


def groups(db: Any, note: Notebook) -> None:
    fill(db, "g", *(f"{n}-0" for n in range(1, 8)))
    note(db.xgroup_create, "g", "all", "0")
    note(db.xgroup_create, "g", "new")
    note(db.xgroup_create, "g", "some", id="3-0", entries_read=3)
    note(db.xgroup_create, "made", "first", mkstream=True)
    note(db.xgroup_create, "made", b"second", id=0, mkstream=True, entries_read=0)
    note(db.xgroup_setid, "g", "new", "5-0")
    note(db.xgroup_setid, "g", "new", "6-0", entries_read=6)
    note(db.xgroup_setid, "g", "new", "$")
    note(db.xgroup_createconsumer, "g", "all", "idler")
    note(db.xgroup_createconsumer, "g", "all", "idler")
    note(db.xinfo_groups, "g")
    note(db.xinfo_groups, "made")
    note(db.xinfo_consumers, "g", "all")
    note(db.xinfo_consumers, "g", "new")
    note(db.xgroup_destroy, "made", "first")
    note(db.xgroup_destroy, "made", "first")


def group_reading(db: Any, note: Notebook) -> None:
    note(db.xreadgroup, "all", "a", {"g": ">"}, count=2)
    note(db.xreadgroup, "all", "b", {"g": ">"}, 1, noack=True)
    note(db.xreadgroup, groupname="all", consumername="b", streams={"g": ">"}, count=2, block=1)
    note(db.xreadgroup, "new", "a", {"g": ">"})
    note(db.xreadgroup, "new", "a", {"g": ">"}, block=1)
    note(db.xreadgroup, "all", "a", {"g": "0"})
    note(db.xreadgroup, "all", "a", {"g": 1})
    note(db.xreadgroup, "all", "nobody", {"g": "0"})
    db.xdel("g", "1-0")
    note(db.xreadgroup, "all", "a", {"g": "0"}, count=1)
    note(db.xreadgroup, "all", "a", {"g": "0"}, noack=True)
    note(db.xack, "g", "all", "2-0", "2-0", "99-0")
    note(db.xack, "g", "nobody", "2-0")
    note(db.xack, "missing", "all", "2-0")
    note(db.xack, "g", "all")


def pending(db: Any, note: Notebook) -> None:
    note(db.xpending, "g", "all")
    note(db.xpending, "g", "new")
    note(db.xpending_range, "g", "all", "-", "+", 10)
    note(db.xpending_range, "g", "all", min="(1-0", max="5", count=1)
    note(db.xpending_range, "g", "all", "-", "+", 10, "b")
    note(db.xpending_range, "g", "all", "-", "+", 10, consumername="unknown")
    note(db.xpending_range, "g", "all", "-", "+", 10, idle=0)
    note(db.xpending_range, "g", "all", "-", "+", 10, "a", idle=10 * MINUTE_MS)
    note(db.xpending_range, "g", "all", "-", "+", 0)
    note(db.xpending_range, "g", "all", None, None, None)


def claiming(db: Any, note: Notebook) -> None:
    note(db.xclaim, "g", "all", "c", 0, ["4-0"])
    note(db.xclaim, "g", "all", "c", 0, ("4-0", "5-0"), idle=5 * MINUTE_MS)
    note(db.xclaim, "g", "all", "d", 2 * MINUTE_MS, ["4-0", "5-0", "1-0"], justid=True)
    note(db.xclaim, "g", "all", "d", 2 * MINUTE_MS, ["4-0"])
    note(db.xclaim, "g", "all", "d", 0, ["6-0"])
    note(db.xclaim, "g", "all", "d", min_idle_time=0, message_ids=["6-0"], force=True)
    note(db.xclaim, "g", "all", "d", 0, ["6-0"], time=1_000_000_000_000, retrycount=7)
    note(db.xpending_range, "g", "all", "-", "+", 10, "c")
    note(db.xpending_range, "g", "all", "4-0", "5-0", 10)
    note(lambda: [row["times_delivered"] for row in db.xpending_range("g", "all", "-", "+", 9)])
    note(db.xpending, "g", "all")


def autoclaiming(db: Any, note: Notebook) -> None:
    db.xclaim("g", "all", "a", 0, ["4-0", "5-0", "6-0"], idle=10 * MINUTE_MS)
    db.xdel("g", "5-0")
    note(db.xautoclaim, "g", "all", "e", 20 * MINUTE_MS)
    note(db.xautoclaim, "g", "all", "e", 5 * MINUTE_MS, count=1)
    note(db.xautoclaim, "g", "all", "e", 5 * MINUTE_MS, start_id="5-0", justid=True)
    note(db.xautoclaim, "g", "all", "f", min_idle_time=0, start_id="0", count=10)
    note(db.xautoclaim, "g", "all", "f", 0, "(6-0")
    note(db.xpending, "g", "all")
    note(db.xgroup_delconsumer, "g", "all", "f")
    note(db.xgroup_delconsumer, "g", "all", "f")


# --- Looking -----------------------------------------------------------------------------------------------


def looking(db: Any, note: Notebook) -> None:
    db.xreadgroup("all", "z", {"g": ">"})
    note(db.xinfo_stream, "g")
    note(db.xinfo_stream, "g", full=True)
    note(db.xinfo_groups, "g")
    note(db.xinfo_consumers, "g", "all")
    note(db.xinfo_stream, "made")
    note(db.xinfo_stream, "made", full=True)
    note(db.xinfo_stream, "t", True)


# --- Refusals ----------------------------------------------------------------------------------------------


def refused_by_the_server(db: Any, note: Notebook) -> None:
    fill(db, "x", "5-5")
    for entry_id in ("5-5", "5-4", "0-0", "4-*", "a", "-", "+", "1-", "", "18446744073709551616"):
        note(db.xadd, "x", {"a": "b"}, id=entry_id)
    note(db.xadd, "top", {"a": "b"}, id="18446744073709551615-18446744073709551615")
    note(db.xadd, "top", {"a": "b"})
    note(db.xadd, "top", {"a": "b"}, id="18446744073709551615-18446744073709551615")
    note(db.xadd, "x", {"a": "b"}, id="6-0", limit=3)
    note(db.xadd, "x", {"a": "b"}, id="6-0", maxlen=3, approximate=False, limit=3)
    note(db.xadd, "x", {"a": "b"}, id="6-0", maxlen=3, limit=-1)
    note(db.xtrim, "x", maxlen="many")
    note(db.xtrim, "x", maxlen=-1)
    note(db.xtrim, "x", minid="many")
    note(db.xdel, "x", "5-5", "oops")
    note(db.xrange, "x", "(", "+")
    note(db.xrange, "x", "-", "(0-0")
    note(db.xrevrange, "x", "+", "(18446744073709551615-18446744073709551615")
    note(db.xread, {"x": "oops"})
    note(db.xread, {"x": ">"})
    note(db.xreadgroup, "none", "a", {"x": ">"})
    note(db.xreadgroup, "all", "a", {"g": "$"})
    note(db.xreadgroup, "all", "a", {"g": "oops"})
    note(db.xgroup_create, "missing", "all")
    note(db.xgroup_create, "g", "all")
    note(db.xgroup_create, "g", "other", "oops")
    note(db.xgroup_create, "g", "other", entries_read=-5)
    note(db.xgroup_setid, "g", "none", "0")
    note(db.xgroup_setid, "missing", "none", "0")
    note(db.xgroup_destroy, "missing", "none")
    note(db.xgroup_createconsumer, "g", "none", "a")
    note(db.xgroup_delconsumer, "g", "none\r\n\xff", "a")
    note(db.xack, "g", "all", "oops")
    note(db.xpending, "g", b"none\xff")
    note(db.xpending, "missing", "none")
    note(db.xpending_range, "g", "none", "-", "+", 5)
    note(db.xpending_range, "g", "all", "oops", "+", 5)
    note(db.xclaim, "g", "none", "a", 0, ["1-0"])
    note(db.xclaim, "g", "all", "a", 0, ["1-0", "oops"])
    note(db.xautoclaim, "g", "none", "a", 0)
    note(db.xautoclaim, "g", "all", "a", 0, "oops")
    note(db.xautoclaim, "g", "all", "a", 0, count=0)
    note(db.xinfo_stream, "missing")
    note(db.xinfo_groups, "missing")
    note(db.xinfo_consumers, "missing", "all")
    note(db.xinfo_consumers, "g", "none")
    note(db.xrange, "x")


def refused_by_the_client(db: Any, note: Notebook) -> None:
    for call in CLIENT_REFUSALS:
        note(getattr(db, call[0]), *call[1], **call[2])


def newer_options(db: Any, note: Notebook) -> None:
    """Options of Redis 8 that redis-py knows, and a 7.0 refuses. scenario_8.py has more of them."""
    note(db.xadd, "x", {"a": "b"}, id="9-0", ref_policy="KEEPREF")
    note(db.xadd, "x", {"a": "b"}, idmpauto="p")
    note(db.xadd, "x", {"a": "b"}, idmp=("p", b"i"))
    note(db.xtrim, "x", maxlen=1, ref_policy="ACKED")
    note(db.xread, {"x": "0"}, max_count=5)
    note(db.xread, {"x": "0"}, max_size=5)
    note(db.xreadgroup, "all", "a", {"g": ">"}, max_count=5, max_size=5)
    note(db.xreadgroup, "all", "a", {"g": ">"}, claim_min_idle_time=10 * MINUTE_MS)


Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def call(method: str, *args: Any, **options: Any) -> Call:
    return method, args, options


FIELDS = {"a": "b"}
CLIENT_REFUSALS: list[Call] = [
    call("xadd", "x", FIELDS, maxlen=1, minid="1-0"),
    call("xadd", "x", FIELDS, maxlen=-1),
    call("xadd", "x", FIELDS, maxlen="5"),
    call("xadd", "x", FIELDS, maxlen=True),
    call("xadd", "x", {}),
    call("xadd", "x", [("a", "b")]),
    call("xadd", "x", None),
    call("xadd", "x", FIELDS, ref_policy="SOMETIMES"),
    call("xadd", "x", FIELDS, idmpauto="p", idmp=("p", b"i")),
    call("xadd", "x", FIELDS, id="1-0", idmpauto="p"),
    call("xadd", "x", FIELDS, idmp="pi"),
    call("xadd", "x", {}, id="1-0", idmpauto="p", maxlen=1, minid="1-0"),
    call("xadd", "x", {}, maxlen=-1, ref_policy="SOMETIMES"),
    call("xadd", "x", {}, maxlen=-1, idmp="pi"),
    call("xadd", "x", {}, ref_policy="SOMETIMES", idmp="pi"),
    call("xadd", "x", {}, id="1-0", ref_policy="SOMETIMES", idmp="pi"),
    call("xtrim", "x"),
    call("xtrim", "x", maxlen=1, minid="1-0"),
    call("xtrim", "x", maxlen=1, ref_policy="SOMETIMES"),
    call("xrange", "x", count=0),
    call("xtrim", "x", maxlen=True),
    call("xrange", "x", count="5"),
    call("xrange", "x", count=True),
    call("xrevrange", "x", count=-1),
    call("xrevrange", "x", count=1.5),
    call("xread", {}),
    call("xread", ["x"]),
    call("xread", None),
    call("xread", {"x": None}),
    call("xread", {"x": "0"}, count=0),
    call("xread", {"x": "0"}, count="5"),
    call("xread", {"x": "0"}, block=-1),
    call("xread", {"x": "0"}, block="5"),
    call("xread", {"x": "0"}, block=True),
    call("xread", {"x": "0"}, count=True),
    call("xread", {"x": "0"}, max_count=0),
    call("xread", {"x": "0"}, max_size=0),
    call("xread", {"x": "0"}, max_count=0, max_size=0),
    call("xread", {"x": "0"}, count=5, max_count=4),
    call("xread", {"x": "0"}, count=5, max_count=4, max_size=0),
    call("xread", {}, count=0, block=-1, max_count=0, max_size=0),
    call("xread", {}, count=0, max_count=0),
    call("xreadgroup", "all", "a", {}),
    call("xreadgroup", "all", "a", ["x"]),
    call("xreadgroup", None, "a", {"g": ">"}),
    call("xreadgroup", "all", "a", {"g": ">"}, count=0),
    call("xreadgroup", "all", "a", {"g": ">"}, block=-1),
    call("xreadgroup", "all", "a", {"g": ">"}, max_count=0),
    call("xreadgroup", "all", "a", {"g": ">"}, max_size=-1),
    call("xreadgroup", "all", "a", {"g": ">"}, count=5, max_count=4),
    call("xreadgroup", "all", "a", {"g": ">"}, claim_min_idle_time=-1),
    call("xreadgroup", "all", "a", {}, count=0, block=-1, max_count=0, max_size=0),
    call("xreadgroup", "all", "a", {}, block=-1, max_count=0, max_size=0),
    call("xreadgroup", "all", "a", {}, block=-1, max_size=0, claim_min_idle_time=-1),
    call("xreadgroup", "all", "a", {}, block=-1, claim_min_idle_time=-1),
    call("xreadgroup", "all", "a", {}, claim_min_idle_time="5"),
    call("xpending_range", "g", "all", "-", "+", None),
    call("xpending_range", "g", "all", None, "+", 5),
    call("xpending_range", "g", "all", None, None, None, "a"),
    call("xpending_range", "g", "all", None, None, None, idle=5),
    call("xpending_range", "g", "all", "-", None, None, idle=-5),
    call("xpending_range", "g", "all", "-", "+", -1),
    call("xpending_range", "g", "all", "-", "+", "many"),
    call("xpending_range", "g", "all", "-", "+", "5"),
    call("xpending_range", "g", "all", "-", "+", 5, idle=-1),
    call("xpending_range", "g", "all", "-", "+", 5, idle="0"),
    call("xpending_range", "g", "all", "-", "+", [5]),
    call("xpending_range", "g", "all", "-", "+", 5, idle=[5]),
    call("xpending_range", "g", "all", "-", "+", 5, ""),
    call("xclaim", "g", "all", "a", -1, ["1-0"]),
    call("xclaim", "g", "all", "a", "0", ["1-0"]),
    call("xclaim", "g", "all", "a", 0, []),
    call("xclaim", "g", "all", "a", 0, "1-0"),
    call("xclaim", "g", "all", "a", 0, {"1-0"}),
    call("xclaim", "g", "all", "a", 0, ["1-0"], idle="5"),
    call("xclaim", "g", "all", "a", 0, ["1-0"], time="5"),
    call("xclaim", "g", "all", "a", 0, ["1-0"], retrycount="5"),
    call("xclaim", "g", "all", "a", 0, ["1-0"], force=1),
    call("xclaim", "g", "all", "a", 0, ["1-0"], justid="yes"),
    call("xclaim", "g", "all", "a", 0, [None]),
    call("xautoclaim", "g", "all", "a", -1),
    call("xautoclaim", "g", "all", "a", "soon"),
    call("xautoclaim", "g", "all", "a", None),
    call("xautoclaim", "g", "all", "a", 0, count=-1),
    call("xautoclaim", "g", "all", "a", 0, count="many"),
    call("xautoclaim", "g", "all", "a", 0, count=[1]),
    call("xautoclaim", "g", "all", "a", "0", count="1"),
    call("xgroup_create", "g", None),
    call("xgroup_setid", "g", "all", None),
    call("xinfo_stream", None),
]
