"""As scenario.py: a program with the stream methods and options that Redis 8.2 to 8.6 added."""

from __future__ import annotations

from typing import Any

from tests.support.redis_py.scenario import MINUTE_MS, Call, Notebook, call, fill

FIELDS = {"a": "b"}


def run(db: Any) -> list[str]:
    """Run the program; return one line for each call."""
    notes = Notebook()
    for step in (
        *(removing, acknowledging, trimming, claiming, claiming_and_blocking),
        *(producing, configuring, looking, of_later_versions, refused_by_the_server),
        *(refused_by_the_client, in_a_pipeline),
    ):
        notes.begin(step.__name__)
        step(db, notes)
    return notes.lines


def with_groups(db: Any, key: str) -> None:
    """Nine entries. Group `g` has read eight, and acknowledged one of them; `h` has read four."""
    fill(db, key, *(f"{n}-0" for n in range(1, 10)))
    db.xgroup_create(key, "g", "0")
    db.xgroup_create(key, "h", "0")
    db.xreadgroup("g", "a", {key: ">"}, count=8)
    db.xreadgroup("h", "a", {key: ">"}, count=4)
    db.xack(key, "g", "1-0")


def what_is_left(db: Any, note: Notebook, key: str) -> None:
    note(db.xrange, key)
    note(db.xpending_range, key, "g", "-", "+", 20)
    note(db.xpending_range, key, "h", "-", "+", 20)
    note(db.xinfo_groups, key)


def removing(db: Any, note: Notebook) -> None:
    with_groups(db, "d")
    note(db.xdelex, "d", "1-0")
    note(db.xdelex, "d", "1-0", b"2-0", "99-0", ref_policy="KEEPREF")
    note(db.xdelex, "d", "2-0", "3-0", 4, ref_policy="DELREF")
    note(db.xdelex, "d", "5-0", "5-0", "77-0", "9-0", ref_policy="ACKED")
    note(db.xdelex, "missing", "1-0", "2-0")
    what_is_left(db, note, "d")


def acknowledging(db: Any, note: Notebook) -> None:
    with_groups(db, "k")
    note(db.xackdel, "k", "g", "1-0", "2-0", "99-0")
    note(db.xackdel, "k", "g", "3-0", ref_policy="DELREF")
    note(db.xackdel, "k", "g", "4-0", "5-0", ref_policy="ACKED")
    note(db.xackdel, "k", "h", "4-0", "4-0", ref_policy="ACKED")
    note(db.xackdel, "k", "none", "5-0", "6-0")
    note(db.xackdel, "missing", "g", b"5-0")
    what_is_left(db, note, "k")


def trimming(db: Any, note: Notebook) -> None:
    with_groups(db, "t")
    note(db.xtrim, "t", minid="4-0", approximate=False, ref_policy="DELREF")
    note(db.xtrim, "t", maxlen=0, approximate=False, ref_policy="ACKED")
    db.xack("t", "h", "4-0")
    db.xack("t", "g", "4-0")
    note(db.xtrim, "t", maxlen=0, approximate=False, ref_policy="ACKED")
    note(db.xtrim, "t", maxlen=3, ref_policy="ACKED", limit=5)
    note(db.xadd, "t", FIELDS, id="20-0", maxlen=2, approximate=False, ref_policy="ACKED")
    note(db.xadd, "t", FIELDS, id="21-0", maxlen=6, approximate=False, ref_policy="DELREF")
    note(db.xadd, "t", FIELDS, id="22-0", minid="8-0", ref_policy="KEEPREF", nomkstream=True)
    note(db.xadd, "t", FIELDS, id="23-0", ref_policy="DELREF")
    what_is_left(db, note, "t")
    with_groups(db, "t2")
    note(db.xtrim, "t2", maxlen=8, approximate=False, ref_policy="KEEPREF")
    what_is_left(db, note, "t2")


def claiming(db: Any, note: Notebook) -> None:
    with_groups(db, "c")
    with_groups(db, "c2")
    db.xclaim("c", "g", "a", 0, ["2-0", "3-0"], idle=10 * MINUTE_MS, retrycount=4)
    db.xclaim("c", "g", "a", 0, ["4-0"], idle=20 * MINUTE_MS, justid=True)
    note(db.xreadgroup, "g", "b", {"c": ">"}, claim_min_idle_time=30 * MINUTE_MS, noack=True)
    note(db.xreadgroup, "g", "b", {"c": ">"}, claim_min_idle_time=30 * MINUTE_MS)
    note(db.xreadgroup, "g", "b", {"c": ">"}, 2, claim_min_idle_time=5 * MINUTE_MS)
    fill(db, "c", "10-0", "11-0")
    note(db.xreadgroup, "g", "b", {"c": ">", "c2": ">"}, claim_min_idle_time=5 * MINUTE_MS)
    note(db.xreadgroup, "g", "b", {"c": "0"}, 1, claim_min_idle_time=5)
    note(db.xreadgroup, "g", "nobody", {"c": "0", "c2": ">"}, claim_min_idle_time=5)
    db.xdel("c", "2-0")
    note(db.xreadgroup, "g", "b", {"c": "0"}, 2, claim_min_idle_time=5)
    db.xclaim("c", "g", "a", 0, ["3-0", "4-0"], idle=10 * MINUTE_MS)
    db.xdel("c", "3-0")
    note(db.xreadgroup, "g", "b", {"c": ">"}, claim_min_idle_time=5 * MINUTE_MS)
    what_is_left(db, note, "c")


def claiming_and_blocking(db: Any, note: Notebook) -> None:
    fill(db, "w", "1-0")
    db.xgroup_create("w", "g", "0")
    db.xreadgroup("g", "a", {"w": ">"})
    note(db.xreadgroup, "g", "b", {"w": ">"}, block=1, claim_min_idle_time=MINUTE_MS)
    note(db.xreadgroup, "g", "b", {"w": ">"}, block=0, claim_min_idle_time=20)
    note(db.xpending_range, "w", "g", "-", "+", 9)


def producing(db: Any, note: Notebook) -> None:
    first = db.xadd("p", FIELDS, idmp=("one", b"m1"))
    again = db.xadd("p", {"other": "fields"}, idmp=("one", b"m1"))
    another = db.xadd("p", FIELDS, idmp=("two", "m1"))
    note(lambda: (type(first).__name__, first == again, first != another))
    first, again = db.xadd("p", FIELDS, idmpauto="one"), db.xadd("p", FIELDS, idmpauto="one")
    another = db.xadd("p", {"a": "c"}, idmpauto="one", maxlen=100, ref_policy="ACKED")
    note(lambda: (first == again, first != another))
    note(db.xadd, "missing", FIELDS, nomkstream=True, idmpauto="one")
    note(db.xlen, "p")


COUNTERS = ("idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked", "iids-added")


def counters(db: Any, key: str) -> list[Any]:
    info = db.xinfo_stream(key)
    return [info[name] for name in (*COUNTERS, "iids-duplicates")]


def configuring(db: Any, note: Notebook) -> None:
    note(lambda: counters(db, "p"))
    note(db.xcfgset, "p", idmp_duration=300)
    note(lambda: counters(db, "p"))
    note(db.xcfgset, "p", 300, 10_000)
    note(db.xcfgset, "p", idmp_maxsize=1)
    note(lambda: counters(db, "p"))


def looking(db: Any, note: Notebook) -> None:
    note(db.xinfo_stream, "d")
    note(db.xinfo_stream, "d", full=True)
    note(db.xinfo_consumers, "c", "g")


def of_later_versions(db: Any, note: Notebook) -> None:
    note(db.xnack, "c", "g", "FAIL", "4-0")
    note(db.xread, {"c": "0"}, max_count=5)
    note(db.xreadgroup, "g", "a", {"c": ">"}, max_size=5)


def refused_by_the_server(db: Any, note: Notebook) -> None:
    note(db.xdelex, "d", "oops")
    note(db.xackdel, "k", "g", "6-0", "oops")
    note(db.xadd, "p", FIELDS, idmp=("", "m"))
    note(db.xadd, "p", FIELDS, idmp=("one", ""))
    note(db.xadd, "p", FIELDS, idmpauto="")
    note(db.xcfgset, "missing", 5)
    note(db.xcfgset, "p", idmp_maxsize=10_001)
    note(db.xreadgroup, "none", "a", {"c": ">"}, claim_min_idle_time=5)
    note(db.xreadgroup, "g", "a", {"c": "$"}, claim_min_idle_time=5)
    note(db.xreadgroup, "g", "a", {"c": ">"}, claim_min_idle_time=2**63)
    note(db.xlen, "p")


def refused_by_the_client(db: Any, note: Notebook) -> None:
    for method, args, options in CLIENT_REFUSALS:
        note(getattr(db, method), *args, **options)


def in_a_pipeline(db: Any, note: Notebook) -> None:
    with_groups(db, "q")
    for transaction in (True, False):
        pipe = db.pipeline(transaction=transaction)
        pipe.xackdel("q", "g", "2-0").xdelex("q", "3-0", ref_policy="DELREF").xcfgset("q", 200)
        pipe.xreadgroup("g", "b", {"q": ">"}, block=1, claim_min_idle_time=MINUTE_MS)
        pipe.xreadgroup("h", "b", {"q": ">"}, 1, claim_min_idle_time=MINUTE_MS)
        note(pipe.execute)
        pipe.xlen("q").xnack("q", "g", "FAIL", "4-0")
        note(pipe.execute)
        pipe.reset()
    note(db.xlen, "q")


CLIENT_REFUSALS: list[Call] = [
    call("xdelex", "d"),
    call("xdelex", "d", ref_policy="SOMETIMES"),
    call("xdelex", "d", "1-0", ref_policy="SOMETIMES"),
    call("xdelex", "d", "1-0", ref_policy="acked"),
    call("xdelex", "d", "1-0", ref_policy=None),
    call("xdelex", "d", None),
    call("xdelex", None, "1-0"),
    call("xackdel", "k", "g"),
    call("xackdel", "k", "g", ref_policy="SOMETIMES"),
    call("xackdel", "k", "g", "1-0", ref_policy="SOMETIMES"),
    call("xackdel", "k", None, "1-0"),
    call("xnack", "k", "g", "FAIL"),
    call("xnack", "k", "g", "LATER"),
    call("xnack", "k", "g", "LATER", "1-0"),
    call("xnack", "k", "g", "fail", "1-0"),
    call("xnack", "k", "g", "FAIL", "1-0", retrycount=-1),
    call("xnack", "k", "g", "FAIL", "1-0", retrycount="1"),
    call("xnack", "k", "g", "LATER", "1-0", retrycount=-1),
    call("xcfgset", "p"),
    call("xcfgset", "p", idmp_maxsize=0),
    call("xcfgset", "p", idmp_maxsize=1_000_001),
    call("xcfgset", "p", idmp_maxsize="5"),
    call("xcfgset", "p", idmp_maxsize=True),
    call("xcfgset", "p", idmp_duration=True),
    call("xcfgset", None, idmp_duration=5),
    call("xadd", "p", FIELDS, idmp=("one",)),
    call("xadd", "p", FIELDS, idmp=["one", "m"]),
    call("xadd", "p", FIELDS, idmp=(None, "m")),
    call("xadd", "p", FIELDS, id="1-0", idmp=("one", "m")),
    call("xadd", "p", FIELDS, id=b"*", idmpauto="one"),
    call("xadd", "p", FIELDS, maxlen=1, ref_policy="acked"),
    call("xtrim", "p", maxlen=1, ref_policy="acked"),
    call("xreadgroup", "g", "a", {"c": ">"}, claim_min_idle_time=True),
    call("xreadgroup", "g", "a", {"c": ">"}, claim_min_idle_time=1.5),
]
