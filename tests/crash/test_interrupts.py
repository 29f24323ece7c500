"""Signal handlers that raise at every moment of an embedded call: no acknowledged write is lost.

The interpreter runs signal handlers at the start of a Python function and after a call of a C function.
`Interrupted` raises at the n-th of these moments, so that a test can try all of them in plain Python.
Compiled code has no such moments inside. It is tested with a storm of real signals.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import penstock
from penstock.build import KIND
from penstock.embedded.database import Database
from penstock.embedded.durability import Keeper
from penstock.engine.execute import Engine
from penstock.persist import backoff
from penstock.persist.aof.commit import Policy
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store
from tests.support.campaign import SOAK, cases, seed
from tests.support.disk.fake_disk import FakeDisk

PACKAGE = str(Path(penstock.__file__).parent)
IS_COMPILED = KIND == "compiled"
VERSION = "8.8"  # the first with XNACK


class Interrupted:
    """Raises KeyboardInterrupt at the n-th moment inside the `with` block. `moments`: their number."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.moments = 0

    def __enter__(self) -> Interrupted:
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if _is_in_finalizer(frame):
            return
        if self.moments == self._at:
            self.moments += 1
            raise KeyboardInterrupt
        self.moments += 1


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Tell whether Python would ignore an interrupt: it does in a finalizer."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def opened(disk: FakeDisk, policy: Policy) -> Database:
    engine = Engine(compat_version=VERSION)
    store = Store(disk, Layout("/data"), engine, DATA_ROWS)
    store.lock()
    recovery = store.recovery(load_truncated=True)
    recovered = recovery.with_log()
    engine.adopt(recovery.engine)
    store.begin_log(recovered, policy, SnapshotOptions())
    return Database(engine, True, Keeper(store, policy, SnapshotOptions()))


def refused(db: Database) -> None:
    with pytest.raises(penstock.CommandError, match="BUSYGROUP"):
        db.xgroup_create("s", "g", "0")


CALLS: dict[str, Callable[[Database], Any]] = {
    "xadd": lambda db: db.xadd("s", {"k": "interrupted"}),
    "xadd that trims": lambda db: db.xadd("s", {"k": "interrupted"}, maxlen=2, approximate=False),
    "xreadgroup": lambda db: db.xreadgroup("g", "c", {"s": ">"}, count=1),
    "xack": lambda db: db.xack("s", "g", "2-0"),
    "xadd with a name": lambda db: db.xadd("s", {"k": "interrupted"}, idmp=("p", "m")),
    "xadd of a known name": lambda db: db.xadd("s", {"k": "v"}, idmp=("p", "known")),
    "xcfgset": lambda db: db.xcfgset("s", idmp_maxsize=5),
    "xreadgroup that claims": lambda db: db.xreadgroup("g", "d", {"s": ">"}, claim_min_idle_time=0),
    "xackdel": lambda db: db.xackdel("s", "g", "1-0", "2-0", ref_policy="DELREF"),
    "xdelex": lambda db: db.xdelex("s", "1-0", "2-0", "3-0", ref_policy="DELREF"),
    "xtrim of what is acknowledged": lambda db: db.xtrim("s", 1, False, ref_policy="ACKED"),
    "xnack": lambda db: db.xnack("s", "g", "FAIL", "1-0", "2-0"),
    "xclaim": lambda db: db.xclaim("s", "g", "d", 0, ["2-0"]),
    "xgroup_create": lambda db: db.xgroup_create("s", "h", "0"),
    "refused": refused,
    "xrange": lambda db: db.xrange("s"),
}


def state_of(db: Database) -> tuple[Any, ...]:
    """Everything that the calls above can change."""
    groups = [(row["name"], row["last-delivered-id"]) for row in db.xinfo_groups("s")]
    pending = [
        (row["message_id"], row["consumer"], row["times_delivered"])
        for row in db.xpending_range("s", "g", "-", "+", 99)
    ]
    info = db.xinfo_stream("s")
    producers = [value for name, value in info.items() if name.startswith(("idmp-", "iids-"))]
    return [entry for entry, _ in db.xrange("s")], groups, pending, producers


def prepared(policy: Policy) -> tuple[FakeDisk, Database]:
    disk = FakeDisk()
    db = opened(disk, policy)
    for number in (1, 2, 3):
        db.xadd("s", {"k": "v"}, id=f"{number}-0")
    db.xcfgset("s", idmp_duration=86_400)  # the name must not expire if the machine is slow
    db.xadd("s", {"k": "v"}, idmp=("p", "known"))
    db.xgroup_create("s", "g", "0")
    db.xreadgroup("g", "c", {"s": ">"}, count=2)
    return disk, db


def moments_of(name: str, policy: Policy) -> int:
    """The number of moments at which a call can be interrupted."""
    _, db = prepared(policy)
    with db, Interrupted(-1) as interrupted:
        CALLS[name](db)
    return interrupted.moments


@pytest.fixture(autouse=True)
def tries_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "fresh_bases", lambda **_: backoff.Backoff(0.0, 0.0))


@pytest.mark.skipif(
    IS_COMPILED, reason="compiled code runs no signal handler: see the storms below"
)
@pytest.mark.parametrize("policy", [Policy.ALWAYS, Policy.EVERY_SECOND])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_moment_of_a_call_loses_nothing(name: str, policy: Policy) -> None:
    """Writes before and after it survive, and the interrupted call is applied completely or not at all."""
    _, whole = prepared(policy)
    before = state_of(whole)
    CALLS[name](whole)
    allowed = [before, state_of(whole)]
    whole.close()
    moments = moments_of(name, policy)
    assert moments > 100
    step = 1 if SOAK else moments // 25
    for at in range(random.Random(seed()).randrange(step), moments, step):
        disk, db = prepared(policy)
        with suppress(KeyboardInterrupt), Interrupted(at):
            CALLS[name](db)
        found = state_of(db)
        assert _without_times(found) in [_without_times(state) for state in allowed], at
        later = [db.xadd("s", {"k": "later"}) for _ in range(3)]
        state = state_of(db)
        assert [entry for entry in state[0] if entry in later] == later
        left = opened(disk.after_kill(), policy)
        assert state_of(left) == state, f"killed, after an interrupt at {at}"
        left.close()
        db.close()
        again = opened(disk.after_kill(), policy)
        assert state_of(again) == state, f"closed, after an interrupt at {at}"
        again.close()


def _without_times(state: tuple[Any, ...]) -> str:
    """Leave out the milliseconds of generated ids, which differ from run to run."""
    return re.sub(r"\d{13}-\d+", "generated", repr(state))


@pytest.mark.skipif(
    IS_COMPILED, reason="compiled code runs no signal handler: see the storms below"
)
def test_interrupts_one_after_the_other_lose_nothing() -> None:
    """Also interrupts during the clean-up of an interrupted call, or while the next call mends the log."""
    for number in range(cases(200)):
        dice = random.Random(number)
        disk, db = prepared(dice.choice([Policy.ALWAYS, Policy.EVERY_SECOND]))
        acknowledged = []
        for _ in range(12):
            with suppress(KeyboardInterrupt), Interrupted(dice.randrange(400)):
                acknowledged.append(db.xadd("s", {"k": "v"}))
                acknowledged.append(db.xadd("s", {"k": "v"}))
        acknowledged.append(db.xadd("s", {"k": "last"}))
        db.close()
        with opened(disk.after_kill(), Policy.ALWAYS) as again:
            found = [entry for entry, _ in again.xrange("s")]
        assert [entry for entry in found if entry in acknowledged] == acknowledged, number
        assert len(set(found)) == len(found)


@pytest.mark.skipif(
    IS_COMPILED, reason="compiled code runs no signal handler: see the storms below"
)
@pytest.mark.parametrize("policy", [Policy.ALWAYS, Policy.EVERY_SECOND])
def test_an_interrupted_call_can_be_followed_by_close_at_once(policy: Policy) -> None:
    """Ctrl-C inside `with` ended in MISCONF."""
    moments = moments_of("xadd", policy)
    for at in range(0, moments, 1 if SOAK else moments // 20):
        disk, db = prepared(policy)
        with suppress(KeyboardInterrupt), Interrupted(at):
            db.xadd("s", {"k": "interrupted"})
        db.close()
        with opened(disk.after_kill(), policy) as again:
            assert again.xlen("s") in (4, 5), at


# --- Storms of real signals ------------------------------------------------------------------------


def run_apart(script: str, *arguments: str) -> str:
    """Run a program in a separate process; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


STORM = """
    import random, signal, sys, threading, time
    import penstock, redis

    signal.signal(signal.SIGINT, signal.default_int_handler)
    path, policy, rounds, others = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    db = penstock.open(path, appendfsync=policy)
    acknowledged, of_others = [], []
    main = threading.get_ident()
    ready, over = [], []  # lists, not Events: an Event that is interrupted may stay locked

    def storm():
        while not over:
            time.sleep(random.random() * 0.01)
            if ready:
                ready.clear()
                signal.pthread_kill(main, signal.SIGINT)

    def add_as_thread():
        while not over:
            try:
                of_others.append(db.xadd("o", {"n": "1"}))
            except penstock.CommandError as error:  # the thread that wrote for both was interrupted
                assert "unknown" in str(error), error

    def add_as_client():
        connection = redis.Redis(port=serving.port)
        while not over:
            try:
                of_others.append(connection.xadd("o", {"n": "1"}))
            except redis.ResponseError as error:  # the main thread was interrupted while it wrote
                assert "MISCONF" in str(error), error

    if others == "clients":
        serving = db.serve(port=0)
    works = {"nobody": [], "a thread": [add_as_thread], "clients": [add_as_client] * 2}[others]
    threads = [threading.Thread(target=work) for work in (storm, *works)]
    for thread in threads:
        thread.start()
    interrupts = 0
    while interrupts < rounds:
        try:
            ready.append(True)
            while True:
                acknowledged.append(db.xadd("s", {"n": str(len(acknowledged))}))
        except KeyboardInterrupt:
            interrupts += 1
    over.append(True)
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:
                pass
    try:
        time.sleep(0.01)
    except KeyboardInterrupt:
        pass
    acknowledged += [db.xadd("s", {"n": "later"}) for _ in range(50)]
    db.close()
    db = penstock.open(path)
    for stream, ids in (("s", acknowledged), ("o", of_others)):
        found = [entry for entry, _ in db.xrange(stream)]
        lost = set(ids) - set(found)
        assert not lost, (stream, len(lost), len(ids))
        assert found == sorted(found, key=lambda entry: [int(part) for part in entry.split(b"-")])
    print("nothing lost")
"""


@pytest.mark.parametrize("others", ["nobody", "a thread", "clients"])
@pytest.mark.parametrize("policy", [policy.value for policy in Policy])
def test_a_caught_ctrl_c_loses_no_write(tmp_path: Path, policy: str, others: str) -> None:
    """No write of the interrupted thread, before or after, nor of threads and clients that write meanwhile.

    The size was not advanced, so every later batch had a wrong offset: 0 of 50 entries came back.
    """
    rounds = 1000 if SOAK else 60
    assert run_apart(STORM, str(tmp_path / "data"), policy, str(rounds), others) == "nothing lost"
