"""The embedded Database: threads, unusual values, and arguments that it refuses."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

import penstock
from penstock.core.frame import Frame
from penstock.embedded import results
from penstock.embedded.thread_waiter import ThreadWaiter
from penstock.engine.clock import ManualClock, SystemClock
from penstock.engine.execute import TABLE, Engine
from tests.support.redis_py.scenario import CLIENT_REFUSALS, Call

SECONDS_MAX = 30.0  # a slower machine has other problems
LONG_MS = 60_000


@pytest.fixture
def db() -> Iterator[penstock.Database]:
    with penstock.open() as db:
        yield db


class Worker(threading.Thread):
    """A thread that keeps the result or the exception of its function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._found: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._found = self._function()
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            self._error = error

    def result(self) -> Any:
        self.join(SECONDS_MAX)
        assert not self.is_alive(), "the thread is still waiting"
        if self._error is not None:
            raise self._error
        return self._found


class Door(ManualClock):
    """A clock that counts, once `open`, how often it is read. A blocking read reads it before it waits."""

    def __init__(self) -> None:
        super().__init__(1000)
        self.looks = threading.Semaphore(0)
        self.open = False

    def now_us(self) -> int:
        if self.open:
            self.looks.release()
        return super().now_us()


def started(function: Callable[[], Any], db: penstock.Database[Any]) -> Worker:
    """A worker whose blocking call has probably started to wait.

    It cannot be seen from outside when a thread starts to wait, so tests must pass either way: a read after
    an id also finds an entry that was added before the read.
    """
    begun = threading.Event()

    def run() -> Any:
        begun.set()
        return function()

    worker = Worker(run)
    assert begun.wait(SECONDS_MAX)
    db.xlen("gives the other thread time to run")
    return worker


# --- Blocking between threads --------------------------------------------------------------------


@pytest.mark.parametrize("block", [0, LONG_MS, 2**62])
def test_a_blocked_read_is_served_by_the_thread_that_adds(
    db: penstock.Database, block: int
) -> None:
    worker = started(lambda: db.xread({"s": "0"}, block=block), db)
    db.xadd("s", {"k": "v"}, id="1-0")
    assert worker.result() == [[b"s", [(b"1-0", {b"k": b"v"})]]]


def test_a_blocked_read_decodes_its_result() -> None:
    with penstock.open(decode_responses=True) as db:
        worker = started(lambda: db.xread({"s": "0"}, block=0), db)
        db.xadd("s", {"k": "v"}, id="1-0")
        assert worker.result() == [["s", [("1-0", {"k": "v"})]]]


def test_a_blocked_group_read_is_served_once_and_is_pending(db: penstock.Database) -> None:
    db.xgroup_create("s", "g", mkstream=True)
    workers = [started(lambda: db.xreadgroup("g", "a", {"s": ">"}, block=0), db) for _ in range(2)]
    db.xadd("s", {"k": "1"}, id="1-0")
    db.xadd("s", {"k": "2"}, id="2-0")
    found = [entry for worker in workers for _, entries in worker.result() for entry in entries]
    assert sorted(found) == [(b"1-0", {b"k": b"1"}), (b"2-0", {b"k": b"2"})]
    assert db.xpending("s", "g")["pending"] == 2


def test_a_read_that_times_out_is_empty_and_leaves_no_waiter(db: penstock.Database) -> None:
    db.xgroup_create("s", "g", mkstream=True)
    assert db.xread({"s": "$"}, block=1) == []
    assert db.xreadgroup("g", "a", {"s": ">"}, block=1) == []
    db.xadd("s", {"k": "v"}, id="1-0")
    # A waiter that had stayed would have taken the entry.
    assert db.xpending("s", "g")["pending"] == 0
    found: Any = db.xreadgroup("g", "b", {"s": ">"})
    assert found == [[b"s", [(b"1-0", {b"k": b"v"})]]]


def test_a_blocked_reader_gets_an_error_when_its_group_is_destroyed() -> None:
    door = Door()
    with penstock.open(clock=door) as db:
        db.xgroup_create("s", "g", mkstream=True)
        door.open = True
        worker = Worker(lambda: db.xreadgroup("g", "a", {"s": ">"}, block=0))
        assert door.looks.acquire(timeout=SECONDS_MAX)
        db.xgroup_destroy("s", "g")
        with pytest.raises(penstock.CommandError, match="NOGROUP No such key 's'"):
            worker.result()


def test_a_blocked_reader_gets_an_entry_even_if_it_is_trimmed_at_once(
    db: penstock.Database,
) -> None:
    door = Door()
    with penstock.open(clock=door) as db:
        db.xgroup_create("s", "g", mkstream=True)
        door.open = True
        worker = Worker(lambda: db.xreadgroup("g", "a", {"s": ">"}, block=0))
        assert door.looks.acquire(timeout=SECONDS_MAX)
        db.xadd("s", {"k": "v"}, id="1-0")
        db.xtrim("s", maxlen=0, approximate=False)
        assert worker.result() == [[b"s", [(b"1-0", {b"k": b"v"})]]]


def test_other_calls_run_while_a_read_waits(db: penstock.Database) -> None:
    worker = started(lambda: db.xread({"s": "$", "end": "0"}, block=0), db)
    for n in range(1, 100):
        db.xadd("other", {"n": n})
    assert db.xlen("other") == 99
    db.xadd("end", {"k": "v"}, id="1-0")
    assert worker.result() == [[b"end", [(b"1-0", {b"k": b"v"})]]]


# --- Many threads ----------------------------------------------------------------------------------


def test_eight_threads_add_and_read_and_every_entry_is_delivered_once(
    db: penstock.Database,
) -> None:
    producers, consumers, each = 4, 4, 200
    db.xgroup_create("s", "g", mkstream=True)
    added: list[list[bytes]] = [[] for _ in range(producers)]
    taken: list[list[bytes]] = [[] for _ in range(consumers)]

    def produce(n: int) -> None:
        for number in range(each):
            added[n].append(db.xadd("s", {"n": n, "number": number}))

    def consume(n: int) -> None:
        while True:
            for _, entries in db.xreadgroup("g", f"c{n}", {"s": ">"}, count=5, block=LONG_MS):
                for entry_id, fields in entries:
                    if b"stop" in fields:
                        return
                    taken[n].append(entry_id)
                    assert db.xack("s", "g", entry_id) == 1

    workers = [Worker(lambda n=n: consume(n)) for n in range(consumers)]  # type: ignore[misc]
    makers = [Worker(lambda n=n: produce(n)) for n in range(producers)]  # type: ignore[misc]
    for maker in makers:
        maker.result()
    # Add more until every consumer has got one: COUNT may give several to the same consumer.
    for worker in workers:
        while worker.is_alive():
            db.xadd("s", {"stop": 1})
            worker.join(0.05)
        worker.result()
    everything = [entry_id for ids in added for entry_id in ids]
    assert len(set(everything)) == producers * each
    assert sorted(entry_id for ids in taken for entry_id in ids) == sorted(everything)
    for ids in added:
        assert ids == sorted(ids, key=_as_numbers)
    stored = [entry_id for entry_id, _ in db.xrange("s")]
    assert stored == sorted(set(stored), key=_as_numbers)


def _as_numbers(entry_id: bytes) -> tuple[int, ...]:
    return tuple(map(int, entry_id.split(b"-")))


# --- Closing -----------------------------------------------------------------------------------------


def test_closing_wakes_every_blocked_reader() -> None:
    door = Door()
    db = penstock.open(clock=door)
    db.xgroup_create("s", "g", mkstream=True)
    door.open = True
    workers = [Worker(lambda: db.xreadgroup("g", "a", {"s": ">"}, block=0)) for _ in range(3)]
    for _ in workers:
        assert door.looks.acquire(timeout=SECONDS_MAX)
    db.close()
    for worker in workers:
        with pytest.raises(penstock.DatabaseClosed):
            worker.result()


def test_a_closed_database_refuses_every_call() -> None:
    with penstock.open() as db:
        db.xadd("s", {"k": "v"})
    for call in (
        lambda: db.xadd("s", {"k": "v"}),
        lambda: db.xlen("s"),
        lambda: db.xread({"s": "0"}),
    ):
        with pytest.raises(penstock.DatabaseClosed, match="the database is closed"):
            call()


def test_closing_twice_is_allowed(db: penstock.Database) -> None:
    db.close()
    db.close()


def test_databases_share_nothing() -> None:
    with penstock.open() as one, penstock.open() as other:
        one.xadd("s", {"k": "v"})
        assert (one.xlen("s"), other.xlen("s")) == (1, 0)


def test_a_database_can_be_neither_copied_nor_pickled(db: penstock.Database) -> None:
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"penstock\.Database"):
            act(db)


# --- Settings ----------------------------------------------------------------------------------------


def test_the_size_of_nodes_can_be_chosen() -> None:
    with penstock.open(node_entries_max=2) as small, penstock.open(node_bytes_max=1) as tiny:
        for n in range(1, 5):
            small.xadd("s", {"k": "v"}, id=f"{n}-0")
            tiny.xadd("s", {"k": "v"}, id=f"{n}-0")
        assert small.xinfo_stream("s")["radix-tree-keys"] == 2
        assert tiny.xinfo_stream("s")["radix-tree-keys"] == 4


def test_a_size_below_zero_is_refused() -> None:
    with pytest.raises(penstock.ConfigError, match="node_bytes_max is a number from 0 to"):
        penstock.open(node_bytes_max=-1)
    with pytest.raises(penstock.ConfigError, match="node_entries_max is a number from 0 to"):
        penstock.open(node_entries_max=-1)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(penstock.ConfigError, match="compat-version"):
        penstock.open(compat_version="5.0")


# --- Arguments that redis-py refuses -------------------------------------------------------------------


class Sent(Exception):
    """redis-py accepts a call."""


class Speechless(redis.Redis):
    """redis-py's client, which encodes a command and does not send it."""

    def execute_command(self, *words: Any, **_options: Any) -> Any:
        for word in words:
            self.get_encoder().encode(word)  # type: ignore[no-untyped-call]
        raise Sent


def refusal_or_none(db: Any, call: Call) -> tuple[str, str] | None:
    """The error that a client raises for a call by itself, without its server."""
    method, args, options = call
    try:
        getattr(db, method)(*args, **options)
    except (Sent, penstock.CommandError):
        return None
    except Exception as error:  # noqa: BLE001 - any kind must be the same in both
        return type(error).__name__, str(error)
    return None


@pytest.mark.parametrize("call", CLIENT_REFUSALS, ids=[call[0] for call in CLIENT_REFUSALS])
def test_a_call_that_redis_py_refuses_is_refused_with_the_same_text(
    db: penstock.Database, call: Call
) -> None:
    assert refusal_or_none(db, call) == refusal_or_none(Speechless(), call)
    assert db.xlen("x") == 0


@pytest.mark.parametrize("value", [True, False, None, ["a"], {"a": "b"}, object(), 1j])
def test_a_value_that_redis_py_cannot_send_is_refused(db: penstock.Database, value: Any) -> None:
    text = f"Invalid input of type: '{type(value).__name__}'. Convert to a bytes, string, int or float first."
    with pytest.raises(penstock.DataError) as refused:
        db.xadd("s", {"k": value})
    assert str(refused.value) == text
    with pytest.raises(penstock.DataError):
        db.xlen(value)
    assert db.xlen("s") == 0


# --- Values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("text", b"text"),
        ("é\U0001f600", "é\U0001f600".encode()),
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd")[1:3], b"bc"),
        (0, b"0"),
        (-7, b"-7"),
        (2**100, str(2**100).encode()),
        (1.5, b"1.5"),
        (1e100, b"1e+100"),
        (float("nan"), b"nan"),
        ("", b""),
        ("x" * 2**20, b"x" * 2**20),
    ],
)
def test_a_value_is_stored_as_redis_py_would_send_it(
    db: penstock.Database, value: Any, stored: bytes
) -> None:
    db.xadd("s", {"value": value, "after": 1}, id="1-0")
    assert db.xrange("s") == [(b"1-0", {b"value": stored, b"after": b"1"})]


class Name(str):
    """A subclass of str, such as a member of a StrEnum."""

    __slots__ = ()


def test_subclasses_of_str_and_int_are_accepted(db: penstock.Database) -> None:
    class Level(int):
        pass

    db.xadd(Name("s"), {Name("k"): Level(5)}, id=Name("1-0"))
    assert db.xrange("s", count=Level(1))[0][0] == b"1-0"


def test_names_may_be_empty(db: penstock.Database) -> None:
    db.xadd("", {"": ""}, id="1-0")
    db.xgroup_create("", "", "0")
    found: Any = db.xreadgroup("", "", {"": ">"})
    assert found == [[b"", [(b"1-0", {b"": b""})]]]
    assert db.xpending("", "")["consumers"] == [{"name": b"", "pending": 1}]


@pytest.mark.parametrize("place", ["key", "field", "value", "id"])
def test_a_lone_surrogate_is_refused_and_nothing_changes(db: penstock.Database, place: str) -> None:
    bad = {place: "\ud800"}
    with pytest.raises(UnicodeEncodeError):
        db.xadd(
            bad.get("key", "s"),
            {bad.get("field", "f"): bad.get("value", "v")},
            id=bad.get("id", "1-0"),
        )
    with pytest.raises(penstock.CommandError, match="no such key"):
        db.xinfo_stream("s")
    assert db.xadd("s", {"f": "v"}, id="1-0") == b"1-0"


def test_bytes_that_are_not_utf_8_cannot_be_decoded() -> None:
    with penstock.open(decode_responses=True) as db:
        db.xadd("s", {"k": b"\xff"}, id="1-0")
        with pytest.raises(UnicodeDecodeError):
            db.xrange("s")
        assert db.xlen("s") == 1
        assert db.xrevrange("s", max="0") == []


def test_a_field_that_is_given_twice_is_once_in_the_result(db: penstock.Database) -> None:
    db.xadd("s", {"k": 1, b"k": 2}, id="1-0")
    assert db.xrange("s") == [(b"1-0", {b"k": b"2"})]


def test_a_refused_call_changes_nothing(db: penstock.Database) -> None:
    db.xadd("s", {"k": "v"}, id="5-0")
    db.xgroup_create("s", "g", "0")
    before = db.xinfo_stream("s", full=True)
    for call in (
        lambda: db.xadd("s", {"k": "v"}, id="5-0"),
        lambda: db.xadd("s", {"k": object()}),  # type: ignore[dict-item]
        lambda: db.xdel("s", "5-0", "oops"),
        lambda: db.xdel("s", "5-0", None),  # type: ignore[arg-type]
        lambda: db.xreadgroup("g", "a", {"s": ">", "missing": ">"}),
        lambda: db.xgroup_create("s", "g"),
        lambda: db.xtrim("s", maxlen=-1),
    ):
        with pytest.raises(penstock.PenstockError):
            call()
    assert db.xinfo_stream("s", full=True) == before


def test_an_error_text_with_bytes_that_are_not_utf_8_can_be_shown(db: penstock.Database) -> None:
    with pytest.raises(penstock.CommandError) as refused:
        db.xpending(b"\xff", "g\r\n")
    assert str(refused.value) == "NOGROUP No such key '\ufffd' or consumer group 'g  '"
    assert refused.value.code == "NOGROUP"
    str(refused.value).encode()


# --- Reentrant calls, interrupts, failing clocks -----------------------------------------------------


class SlowClock(SystemClock):
    """A clock that a test can stop: a command that reads it holds the lock meanwhile."""

    def __init__(self) -> None:
        self.is_slow = False
        self.entered = threading.Event()
        self.leave = threading.Event()

    def now_us(self) -> int:
        if self.is_slow:
            self.entered.set()
            assert self.leave.wait(30)
        return super().now_us()


class CallingClock(SystemClock):
    """A clock that calls the database when it is read, as a signal handler or a finalizer might."""

    db: penstock.Database | None = None

    def now_us(self) -> int:
        db, self.db = self.db, None
        if db is not None:
            db.xlen("s")
        return super().now_us()


def test_a_call_from_inside_a_call_is_refused_and_does_not_hang() -> None:
    clock = CallingClock()
    db = penstock.open(clock=clock)
    clock.db = db
    with pytest.raises(RuntimeError, match="inside a call"):
        db.xadd("s", {"k": "v"})
    assert db.xlen("s") == 0
    assert db.xadd("s", {"k": "v"}, id="1-0") == b"1-0"


def test_an_argument_may_call_the_database() -> None:
    """Arguments are encoded before the call takes the lock."""
    db = penstock.open()

    class Reentrant(dict[str, str]):
        def items(self) -> Any:
            db.xadd("s", {"k": "inner"}, id="1-0")
            return super().items()

    assert db.xadd("s", Reentrant(k="v"), id="2-0") == b"2-0"
    assert db.xlen("s") == 2


def test_a_reader_that_is_interrupted_twice_does_not_release_the_lock_of_another_thread() -> None:
    script = """
import os, signal, threading, time
import penstock
from tests.embedded.test_database import SlowClock
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
clock = SlowClock()
db = penstock.open(clock=clock)
added = []
def add():
    time.sleep(0.3)
    threading.Thread(target=interrupt).start()
    clock.is_slow = True
    added.append(db.xadd("s", {"k": "v"}, id="1-0"))
def interrupt():
    clock.entered.wait()
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
    clock.leave.set()
adder = threading.Thread(target=add)
adder.start()
try:
    db.xread({"other": "$"}, block=0)
except KeyboardInterrupt:
    adder.join()
    assert added == [b"1-0"], added
    assert db.xlen("s") == 1
    print("sound")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "sound", done.stderr


@pytest.mark.parametrize("limit", [-1, 2**62, 1.5, None, "5", True])
def test_a_node_limit_of_the_wrong_type_or_size_is_refused(limit: Any) -> None:
    with pytest.raises(penstock.ConfigError, match="node_entries_max is a number"):
        penstock.open(node_entries_max=limit)


def test_the_largest_node_limit_trims_like_any_other() -> None:
    db = penstock.open(node_entries_max=2**40, node_bytes_max=2**40)
    for n in range(1, 300):
        db.xadd("s", {"k": "v"}, id=f"{n}-0", maxlen=10)
    assert (
        db.xlen("s") == 299
    )  # one node holds them all, and an approximate trim removes whole nodes
    assert db.xtrim("s", maxlen=0) == 299


def test_a_clock_that_fails_leaves_no_stream_behind() -> None:
    class BrokenClock(ManualClock):
        broken = True

        def now_us(self) -> int:
            if self.broken:
                raise OSError("no time")
            return super().now_us()

    clock = BrokenClock()
    db = penstock.open(clock=clock)
    with pytest.raises(OSError, match="no time"):
        db.xadd("s", {"k": "v"})
    clock.broken = False
    with pytest.raises(penstock.CommandError, match="no such key"):
        db.xinfo_stream("s")


def test_a_reader_whose_result_cannot_be_shaped_gets_the_error_and_the_next_is_served() -> None:
    engine = Engine()
    woken = []

    def shape(reply: Any) -> Any:
        raise MemoryError("too much")

    for shaping in (shape, results.served):
        frame = Frame()
        for word in (b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"):
            frame.add(word)
        blocked = engine.execute(TABLE["XREAD"], frame)
        waiter = ThreadWaiter(TABLE["XREAD"], blocked, engine.context.keyspace, shaping)
        engine.park(waiter)
        woken.append(waiter)
    frame = Frame()
    for word in (b"XADD", b"s", b"1-0", b"k", b"v"):
        frame.add(word)
    assert engine.execute(TABLE["XADD"], frame) == b"1-0"
    assert all(waiter.is_served for waiter in woken)
    assert isinstance(woken[0].error, MemoryError)
    assert woken[1].reply == [[b"s", [(b"1-0", {b"k": b"v"})]]]


NONES = """
from penstock.core import check, listpack, memory, stream_id, stream_node
from penstock.core.frame import Frame
from penstock.core.groups.group import Group
from penstock.core.rax.tree import Rax
from penstock.core.stream import Stream
from penstock.engine import arguments
from penstock.engine.commands.streams import groups
from penstock.engine.commands.streams import read
from penstock.engine.clock import Instant
from penstock.engine.execute import TABLE, Engine
from penstock.embedded.thread_waiter import ThreadWaiter
from penstock.engine.keyspace import Keyspace
import penstock

class Forgetful(penstock.Database):
    def __init__(self):
        pass

cases = [
    lambda: Stream().delete(None), lambda: Stream().append(1, None, 0), lambda: Stream().cursor(None),
    lambda: Stream().trim_min_id(None), lambda: Stream().load_node(None, None),
    lambda: Group(None), lambda: Group(stream_id.SMALLEST).deliver(None, None, 0, 0, True),
    lambda: Group(stream_id.SMALLEST).acknowledge(None), lambda: Rax().insert(None, 1),
    lambda: Rax().iterator().seek(">=", None), lambda: Frame().add(None), lambda: Frame().add_text(None),
    lambda: Frame().is_word(0, None), lambda: listpack.total_bytes(None), lambda: listpack.append(None, b""),
    lambda: listpack.append(listpack.new(), None), lambda: listpack.next_at(bytearray(3), 0),
    lambda: stream_node.begin(None, None, 0, 0), lambda: stream_node.NodeCursor().open(None, 0, 0),
    lambda: stream_node.NodeCursor().first(), lambda: stream_id.parse(None), lambda: stream_id.from_key(None),
    lambda: check.check_listpack(None), lambda: check.check_stream(None),
    lambda: TABLE["XREAD"].run(None, None), lambda: Engine().execute(None, Frame()),
    lambda: Engine().execute(TABLE["XLEN"], None), lambda: Keyspace(None).stream_at(None, 0),
    lambda: Instant(None).advance(), lambda: arguments.ids_from(None, 0),
    lambda: read.consumer_of(None, b"s", None, b"x"), lambda: groups.group_or_none(None, None),
    lambda: penstock.Database(None, False).xlen("s"), lambda: Forgetful().xadd("s", {"a": 1}),
]
for case in cases:
    try:
        case()
    except Exception:
        pass
print("alive")
"""


def test_none_and_half_made_objects_are_errors_not_crashes() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", NONES],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "alive", done.stderr
