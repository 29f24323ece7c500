"""A random workload whose data use every feature of a snapshot, as words for an engine or a server."""

from __future__ import annotations

import random

from tests.support.structures.listpacks import EDGE_INTEGERS, NOT_INTEGERS

DATABASES = (0, 0, 0, 5, 9)
KEYS = 4
FAR_MS = 4_000_000_000_000
FIELD_SETS = [
    "temp {v} humid {v}",
    "temp {v}",
    "door {v}",
    "a {v} b {v} c {v} d {v}",
    "7 {v} -3 {v}",
]
GROUPS = ["g", "17", "workers" * 5]
CONSUMERS = ["alice", "bob", "12345", "c" * 40]
PRODUCERS = ["p", "17", "producer:" * 5]
NAMES_SINCE = (8, 6)
RETURNED_SINCE = (8, 8)


def workload(seed: int, steps: int = 400, level: str = "7.0") -> list[list[bytes]]:
    """Commands on streams with groups, pending entries and deletions, lists, strings and expiries.

    From 8.6 on there are streams of producers (`p0` ...), because their ids are generated. Their names do not
    expire during a test. From 8.8 on, entries are returned.
    """
    dice = random.Random(seed)
    since = tuple(map(int, level.split(".")))
    found = [[b"XGROUP", b"CREATE", b"s%d" % n, b"g", b"0", b"MKSTREAM"] for n in range(KEYS)]
    last = 1
    for _ in range(steps):
        if dice.random() < 0.02:
            found.append([b"SELECT", b"%d" % dice.choice(DATABASES)])
            continue
        key = dice.randrange(KEYS)
        if since >= NAMES_SINCE and dice.random() < 0.2:
            found.append(_producer(dice, f"p{key}"))
        elif since >= RETURNED_SINCE and dice.random() < 0.1:
            found.append(_return(dice, f"s{key}", last))
        elif dice.random() < 0.6:
            last += dice.choice([0, 1, 1, 20, 5000])
            found.append(_stream(dice, b"s%d" % key, last))
        else:
            found.append(_other(dice, key))
    return found


def _stream(dice: random.Random, key: bytes, last: int) -> list[bytes]:
    stream, group, consumer = key.decode(), dice.choice(GROUPS), dice.choice(CONSUMERS)
    some_id = f"{dice.randint(0, last)}-{dice.randint(0, 2)}"
    line = dice.choice(
        [
            *["XADD {k} {new} {fields}"] * 12,
            *["XREADGROUP GROUP {g} {c} COUNT {n} STREAMS {k} >"] * 3,
            *["XDEL {k} {id}"] * 3,
            "XACK {k} {g} {id}",
            "XCLAIM {k} {g} {c} 0 {id} {id} RETRYCOUNT 7 TIME 1600000000000",
            "XAUTOCLAIM {k} {g} {c} 0 {id} COUNT 3",
            "XGROUP CREATE {k} {g} {id} MKSTREAM",
            "XGROUP CREATE {k} {g} $ MKSTREAM ENTRIESREAD {n}",
            "XGROUP SETID {k} {g} {id}",
            "XGROUP CREATECONSUMER {k} {g} {c}",
            "XGROUP DELCONSUMER {k} {g} {c}",
            "XTRIM {k} MAXLEN {n}00",
            "XTRIM {k} MAXLEN ~ {n}0",
            "XSETID {k} {new} ENTRIESADDED 100000",
        ]
    )
    fields = dice.choice(FIELD_SETS)
    words = line.split()
    given = {"k": stream, "g": group, "c": consumer, "id": some_id, "n": str(dice.randint(1, 9))}
    given["new"] = (
        f"{last}-{dice.choice(['*', '*', '3'])}" if line.startswith("XADD") else f"{last}-9"
    )
    made: list[bytes] = []
    for word in words:
        if word == "{fields}":
            made += [_value(dice) if part == "{v}" else part.encode() for part in fields.split()]
        else:
            made.append(word.format_map(given).encode())
    return made


def _producer(dice: random.Random, stream: str) -> list[bytes]:
    """A command on a stream of producers. A new size forgets all names, so it is rare."""
    producer, name = dice.choice(PRODUCERS), f"order-{dice.randrange(9)}"
    line = dice.choice(
        [
            *[f"XADD {stream} IDMP {producer} {name} * total {dice.randrange(99)}"] * 8,
            *[f"XADD {stream} IDMPAUTO {producer} * total {dice.randrange(9)}"] * 3,
            f"XADD {stream} * total 1",
            f"XADD {stream} IDMP {producer} {name} MAXLEN 3 * total 1",
            f"XCFGSET {stream} IDMP-DURATION {dice.choice([100, 86_400])}",
            f"XCFGSET {stream} IDMP-MAXSIZE {dice.choice([1, 3, 10_000])}",
            f"XGROUP CREATE {stream} g 0 MKSTREAM",
            f"XREADGROUP GROUP g c COUNT 2 STREAMS {stream} >",
            f"XTRIM {stream} MAXLEN 2",
        ]
    )
    return line.encode().split()


def _return(dice: random.Random, stream: str, last: int) -> list[bytes]:
    ids = [f"{dice.randint(0, last)}-{dice.randint(0, 2)}" for _ in range(dice.choice([1, 5, 40]))]
    mode = dice.choice(["SILENT", "FAIL", "FATAL"])
    line = f"XNACK {stream} {dice.choice(GROUPS)} {mode} IDS {len(ids)} {' '.join(ids)}"
    line += dice.choice(["", " FORCE", " RETRYCOUNT 7", " RETRYCOUNT 0 FORCE"])
    return line.encode().split()


def _other(dice: random.Random, key: int) -> list[bytes]:
    kind = dice.randrange(8)
    if kind < 4:
        end = dice.choice([b"RPUSH", b"LPUSH"])
        return [end, b"l%d" % key, *(_value(dice) for _ in range(dice.choice([1, 3, 60])))]
    if kind == 4:
        return [dice.choice([b"LPOP", b"RPOP"]), b"l%d" % key, b"%d" % dice.randint(1, 5)]
    if kind == 5:
        what = dice.choice([b"s%d", b"l%d", b"k%d"]) % key
        return [b"PEXPIREAT", what, b"%d" % (FAR_MS + dice.randrange(10**9))]
    return [b"SET", b"k%d" % key, _value(dice)]


def _value(dice: random.Random) -> bytes:
    kind = dice.randrange(6)
    if kind == 0:
        return b"%d" % dice.choice(EDGE_INTEGERS)
    if kind == 1:
        return dice.choice(NOT_INTEGERS)
    if kind == 2:
        return dice.choice([b"x", b"open", b"sensor "]) * dice.randint(1, 60)
    if kind == 3 and dice.random() < 0.05:
        return dice.randbytes(dice.choice([4095, 4096, 9000, 20_000]))
    return dice.randbytes(dice.randint(0, 90))
