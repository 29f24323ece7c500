"""A shop whose streams, groups, workers and pipeline run at steady rates, for screenshots.

A thread adds and reads entries four times a second. Rates swing slowly by a tenth, so lines are not flat.
"""

from __future__ import annotations

import json
import math
import threading
import time
from typing import Any

TICKS_PER_SECOND = 4
STEADY_TICKS = 80
PENDING_KEPT = 12  # entries that a group has in work
# Entries per second of each stream, and the share of them that its groups read.
STREAMS = {"clicks": 120, "orders": 48, "invoices": 32, "payments": 20, "checkout": 4}
GROUPS = {
    "clicks": {"funnel": 1.0, "search": 1.0},
    "orders": {"billing": 1.0, "mail": 0.9},
    "invoices": {"billing": 1.0, "ledger": 0.97, "audit": 0.0},
    "payments": {"ledger": 1.0},
}
# The queries of the pipeline, and the share of what they read that each output gets.
QUERIES = {
    "main": {"bronze": 1.0, "silver": 0.98, "reject": 0.02},
    "revenue_by_minute": {"revenue_by_minute": 0.06, "revenue_by_minute.stream": 0.06},
}


class Shop:
    """Runs in a `with` block."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._tick = 0
        self._owed = dict.fromkeys(STREAMS, 0.0)
        self._unread = {(one, group): 0.0 for one, groups in GROUPS.items() for group in groups}
        self._read = 0  # orders since the last batch of the pipeline
        self._closing = threading.Event()
        self._steady = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Shop:
        for stream, groups in GROUPS.items():
            for group in groups:
                self._client.xgroup_create(stream, group, id="0", mkstream=True)
        self._begin()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def wait_until_steady(self) -> None:
        self._steady.wait()

    def _begin(self) -> None:
        """What is there before the first tick: a sensor's history, and what went wrong."""
        client = self._client
        for number in range(320):
            more = {"note": "calibrated"} if number == 4 else {}
            fields = {"temp": 20 + number % 5, "humid": 60 + number % 9} | more
            client.xadd("sensors", fields, id=f"{1_700_000_000_000 + 990 * number}-0")
        client.xdel("sensors", "1700000000990-0", "1700000002970-0")
        facts = {"_reason": "ValueError: card declined", "_source_stream": "payments"}
        for number in range(3):
            dead = {"amount": 12 + number, "_source_id": f"{number}-0", "_attempts": 5}
            client.xadd("payments:dead", dead | facts | {"_group": "ledger"})

    def _run(self) -> None:
        started = time.monotonic()
        while not self._closing.is_set():
            self._tick += 1
            due = started + self._tick / TICKS_PER_SECOND
            self._closing.wait(max(0.0, due - time.monotonic()))
            swing = 1 + 0.1 * math.sin(self._tick / 20)
            for stream, rate in STREAMS.items():
                self._owed[stream] += swing * rate / TICKS_PER_SECOND
                self._add(stream, int(self._owed[stream]))
                self._owed[stream] %= 1
            if self._tick == STEADY_TICKS:
                self._steady.set()
            if self._tick % TICKS_PER_SECOND == 0:
                self._report(self._tick // TICKS_PER_SECOND)

    def _add(self, stream: str, count: int) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for number in range(count):
            pipeline.xadd(stream, fields_of(stream, 100 * self._tick + number))
        pipeline.execute()
        self._read += count if stream == "orders" else 0
        for group, share in GROUPS.get(stream, {}).items():
            self._unread[stream, group] += share * count
            wanted = int(self._unread[stream, group])
            self._unread[stream, group] -= wanted
            if wanted:
                self._client.xreadgroup(group, f"{group}-1", {stream: ">"}, count=wanted)
                self._finish(stream, group)

    def _finish(self, stream: str, group: str) -> None:
        """Acknowledge all but the newest pending entries, and one that is stuck."""
        rows = self._client.xpending_range(stream, group, "-", "+", 500)
        stuck = (stream, group) == ("orders", "billing")
        done = [row["message_id"] for row in rows[int(stuck) : -PENDING_KEPT]]
        if done:
            self._client.xack(stream, group, *done)
        if stuck and rows:
            oldest = rows[0]["message_id"]
            words = ("XCLAIM", stream, group, f"{group}-1", 0, oldest, "IDLE", 4_200_000)
            self._client.execute_command(*words, "RETRYCOUNT", 2)

    def _report(self, second: int) -> None:
        """One batch of each query, which read what was added since the last one."""
        read, self._read = self._read, 0
        for place, (query, outputs) in enumerate(QUERIES.items()):
            seconds = 0.24 + 0.08 * place + 0.04 * math.sin(second / (3 + place))
            told = {"pipeline": "orders", "query": query, "source": "orders", "batch": second}
            told |= {"read": read, "seconds": round(seconds, 3), "pending": 0}
            told |= {
                "rows_per_second": round(read / seconds, 1),
                "lag": 3 + 9 * place + second * 7 % 5,
            }
            for output, share in outputs.items():
                rows = sum(int(share * (one + 1)) > int(share * one) for one in range(read))
                rows = int(second % 7 == 3) if output == "reject" else rows
                self._client.xadd("penstock:metrics", told | {"output": output, "rows": rows})
        if second % 7 == 3:
            reason = {"_reason": ("qty_positive", "parse:price")[second % 2]}
            origin = {"_source_stream": "orders", "_source_id": "1700000000000-0"}
            self._client.xadd("orders:rejected", {"sku": "A7", "qty": -second} | reason | origin)


def fields_of(stream: str, number: int) -> dict[str, Any]:
    """An entry of a stream."""
    if stream != "checkout":
        return {"sku": f"A{number % 50}", "qty": 1 + number % 7, "customer": 1000 + number % 300}
    body = {"customer": {"id": number % 7, "vip": True}, "total": 9.5 + 3.25 * (number // 100 % 37)}
    return {"order": f"A-{1000 + number}", "body": json.dumps(body), "raw": b"\x00\xff\x10"}
