"""Throws damaged bytes at a running server: python fuzz/server.py --port 6379 --seconds 60 --seed 7

Many connections send noise and damaged pipelines: flipped, cut and doubled bytes, huge lengths, nested
arrays, types that only servers send. They read now and then, and close without notice. Meanwhile well-behaved
clients add and read entries, and check every reply.

The well-behaved clients must get correct replies. The caller checks whether the process survives, what it
logs and how much memory it uses (tests/server/net/test_protocol_fuzz.py).

The bytes of a connection depend only on the seed and its number. The interleaving of connections does not, so
a seed repeats the bytes of a campaign but not its timing.

No command here stops or pauses a server or deletes its data, and keys begin with `fuzz:`. Still, do not use
it on a server whose data you need.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

import redis

HOST = "127.0.0.1"
CONNECTIONS = 40
PIECES_MAX = 12  # what one connection sends before it goes
COMMANDS = [
    *("PING", "PING x", "ECHO hello", "HELLO 3", "HELLO 2", "RESET", "QUIT", "CLIENT INFO", "COMMAND COUNT"),
    *("XADD fuzz:s MAXLEN ~ 100 * temp 21 humid 60", "XADD fuzz:s MAXLEN 100 5-* k v", "XLEN fuzz:s"),
    *("XRANGE fuzz:s - + COUNT 10", "XREVRANGE fuzz:s + - COUNT 3", "XREAD COUNT 2 STREAMS fuzz:s 0"),
    *("XREAD BLOCK 5 STREAMS fuzz:s $", "XGROUP CREATE fuzz:s g 0 MKSTREAM", "XACK fuzz:s g 5-0 5-1"),
    *("XREADGROUP GROUP g a COUNT 5 STREAMS fuzz:s >", "XPENDING fuzz:s g - + 5", "XINFO STREAM fuzz:s FULL"),
    *("XAUTOCLAIM fuzz:s g b 0 0 COUNT 3", "XCLAIM fuzz:s g b 0 5-0 FORCE", "XDEL fuzz:s 5-0"),
    *("SET fuzz:a x EX 5", "GET fuzz:a", "INCR fuzz:n", "MGET fuzz:a fuzz:n"),
    *("DEL fuzz:a", "EXPIRE fuzz:n 1"),
    *("LPUSH fuzz:l a b", "RPOP fuzz:l", "LRANGE fuzz:l 0 5", "BLPOP fuzz:l 0.01", "LTRIM fuzz:l 0 10"),
    *("LSET fuzz:l 0 x", "LINSERT fuzz:l AFTER x y", "LPOS fuzz:l x RANK -1", "LMPOP 1 fuzz:l LEFT COUNT 2"),
    *("BLMPOP 0.01 1 fuzz:l RIGHT", "SSUBSCRIBE fuzz:c", "SUNSUBSCRIBE", "SPUBLISH fuzz:c x"),
    *("MULTI", "EXEC", "DISCARD", "WATCH fuzz:a", "SUBSCRIBE fuzz:c"),
    *("PSUBSCRIBE fuzz:*", "PUBLISH fuzz:c x"),
    *("UNSUBSCRIBE", "MONITOR", "CLIENT REPLY SKIP", "CLIENT REPLY OFF", "CLIENT SETNAME fuzz", "SCAN 0"),
    *("KEYS fuzz:*", "TYPE fuzz:s", "OBJECT ENCODING fuzz:a", "SELECT 1", "INFO", "XFOO", "AUTH wrong"),
]  # fmt: skip
HUGE = [
    *(b"$536870912\r\n", b"$536870913\r\n", b"$2147483647\r\n", b"$-1\r\n"),
    *(b"$-2147483648\r\n", b"$" + b"9" * 40),
    *(b"*1048576\r\n", b"*1048577\r\n", b"*2147483647\r\n", b"*2147483648\r\n", b"*-1\r\n", b"*" + b"9" * 40),
    *(b"*1000000\r\n$536870911\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500000000\r\nx"),
]  # fmt: skip
FOREIGN = [
    *(b"%1\r\n+a\r\n:1\r\n", b"~2\r\n:1\r\n:2\r\n", b">2\r\n+a\r\n+b\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n"),
    *(b"(12345678901234567890\r\n", b"=5\r\ntxt:x\r\n", b"!3\r\nERR\r\n"),
    *(b"|1\r\n+a\r\n+b\r\n", b"$?\r\n;0\r\n"),
    *(b"*?\r\n.\r\n", b"+OK\r\n", b"-ERR x\r\n", b":5\r\n", b"$-1\r\n", b"*-1\r\n"),
]  # fmt: skip
LINES = [
    *(b"PING\n", b"  PING  \r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b'ECHO "a\\x00\\n\\"b"\r\n'),
    *(b"ECHO 'a\\'b'\r\n", b"\x00\r\n", b"\xff\n"),
    *(b'ECHO "open\r\n', b"ECHO 'open\r\n", b'ECHO "a"b\r\n', b"XADD fuzz:s * k 'v w'\r\n"),
    *(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
]  # fmt: skip


# --- The bytes -------------------------------------------------------------------------------------


def sound(rng: random.Random) -> bytes:
    """A pipeline of a few commands."""
    found = b""
    for _ in range(rng.randint(1, 8)):
        words = rng.choice(COMMANDS).encode().split()
        found += b"*%d\r\n" % len(words)
        found += b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return found


def flipped(rng: random.Random) -> bytes:
    data = bytearray(sound(rng))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        data[at] = rng.choice(
            (rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 0, 0xFF, 13, 10, 42)
        )
    return bytes(data)


def cut(rng: random.Random) -> bytes:
    data = sound(rng)
    return data[: rng.randrange(len(data))] + (sound(rng) if rng.random() < 0.5 else b"")


def doubled(rng: random.Random) -> bytes:
    data = sound(rng)
    start = rng.randrange(len(data))
    end = rng.randint(start, len(data))
    return data[:end] * rng.choice((1, 1, 20)) + data[start:]


def huge(rng: random.Random) -> bytes:
    """An absurd length, alone or in the middle of something."""
    data = sound(rng)
    at = rng.choice((0, data.find(b"$"), rng.randrange(len(data)), len(data)))
    return data[:at] + rng.choice(HUGE) + data[at:]


def nested(rng: random.Random) -> bytes:
    return b"*1\r\n" * rng.choice((2, 10, 5000)) + sound(rng)


def foreign(rng: random.Random) -> bytes:
    """A type that only servers send, alone or as an argument."""
    found = b"".join(rng.choice(FOREIGN) for _ in range(rng.randint(1, 4)))
    return sound(rng) + rng.choice((b"", b"*2\r\n$4\r\nECHO\r\n")) + found


def line(rng: random.Random) -> bytes:
    found = b"".join(rng.choice(LINES) for _ in range(rng.randint(1, 4)))
    return found + (sound(rng) if rng.random() < 0.5 else b"")


def long_line(rng: random.Random) -> bytes:
    return (
        rng.choice((b"A", b"*", b"$", b"*1\r\n$", b'"', b" "))
        + rng.choice((b"1", b" ", b"x")) * 70_000
    )


def noise(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((1, 10, 100, 5000)))


DAMAGES: tuple[Callable[[random.Random], bytes], ...] = (
    *(
        sound,
        flipped,
        flipped,
        flipped,
        cut,
        doubled,
        huge,
        nested,
        foreign,
        line,
        long_line,
        noise,
    ),
)


# --- Those who send them ---------------------------------------------------------------------------


class Vandal:
    """One connection that sends damaged bytes, reads at random, and closes."""

    def __init__(self, port: int, seed: int, number: int) -> None:
        self._rng = random.Random(f"{seed}/{number}")
        self.socket = socket.create_connection((HOST, port), timeout=30)
        self.socket.setblocking(False)
        self._pieces = self._rng.randint(1, PIECES_MAX)
        self._reads = self._rng.random() < 0.8
        self.sent: Counter[str] = Counter()

    def step(self) -> bool:
        """Send some more; False when it is done or was disconnected."""
        self._pieces -= 1
        if self._pieces < 0:
            return False
        damage = self._rng.choice(DAMAGES)
        self.sent[damage.__name__] += 1
        try:
            self.socket.send(damage(self._rng))
            if self._reads:
                self.socket.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._rng.random() < 0.3:  # sends a reset to the server
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Guest:
    """A well-behaved client: adds and reads in its own stream, and checks every reply."""

    def __init__(self, port: int, protocol: int) -> None:
        self._client = redis.Redis(host=HOST, port=port, protocol=protocol, socket_timeout=60)
        self._key = f"guest:{protocol}"
        self.added = 0

    def step(self) -> None:
        self.added += 1
        entry_id = b"%d-0" % self.added
        assert self._client.xadd(self._key, {"n": self.added}, id=entry_id) == entry_id
        assert self._client.xlen(self._key) == self.added
        first = max(1, self.added - 9)
        expected = [(b"%d-0" % n, {b"n": b"%d" % n}) for n in range(first, self.added + 1)]
        assert self._client.xrange(self._key, f"{first}-0") == expected
        assert self._client.ping()

    def close(self) -> None:
        self._client.delete(self._key)
        self._client.close()


def run_campaign(port: int, seconds: float, seed: int) -> Counter[str]:
    """Run for `seconds`; count connections and the guests' commands. Raises the first error of a guest."""
    thrown: Counter[str] = Counter()
    done = threading.Event()
    vandals = threading.Thread(target=_riot, args=(port, seed, thrown, done))
    guests = [Guest(port, 2), Guest(port, 3)]
    deadline = time.monotonic() + seconds
    vandals.start()
    try:
        while time.monotonic() < deadline and vandals.is_alive():
            for guest in guests:
                guest.step()
        thrown["checked by guests"] = sum(guest.added for guest in guests)
        assert vandals.is_alive(), "the server lets nobody in any more"
    finally:
        done.set()
        vandals.join()
    for guest in guests:
        guest.close()
    return thrown


def _riot(port: int, seed: int, thrown: Counter[str], done: threading.Event) -> None:
    """Keep a number of vandals running."""
    dice = random.Random(seed)
    crowd = [Vandal(port, seed, number) for number in range(CONNECTIONS)]
    number = CONNECTIONS
    while not done.is_set():
        at = dice.randrange(CONNECTIONS)
        if not crowd[at].step():
            crowd[at].close()
            thrown.update(crowd[at].sent)
            thrown["connections"] += 1
            crowd[at] = Vandal(port, seed, number)
            number += 1
    for vandal in crowd:
        vandal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Throw damaged bytes at a running server.")
    parser.add_argument("--port", type=int, default=6379, help="where it listens (default 6379)")
    parser.add_argument("--seconds", type=float, default=60, help="for how long (default 60)")
    parser.add_argument("--seed", type=int, help="what the bytes are made from (default: random)")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}, {options.seconds} seconds, port {options.port}\n")
    for what, count in sorted(run_campaign(options.port, options.seconds, seed).items()):
        sys.stdout.write(f"{count:10} {what}\n")


if __name__ == "__main__":
    main()
