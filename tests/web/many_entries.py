"""The data for the browser tests."""

from __future__ import annotations

from typing import Any

from tests.support.campaign import SOAK

ENTRIES = 1_000_000 if SOAK else 100_000
FIRST_MS = 1_700_000_000_000
STEP_MS = 10
PIPELINED = 5000
LARGEST_ID = "18446744073709551615-18446744073709551614"
EVIL = b"\x1b]0;evil\x07<script>alert('evil')</script><img src=x onerror=alert(1)>"
ODD_NAME = b"odd\xff\\name <b>"


def fill_workers(client: Any) -> None:
    """What workers of a handler store: one entry runs, one waits for its next attempt, one is dead."""
    for number in range(3):
        client.xadd("charges", {"amount": number}, id=f"{FIRST_MS + number}-0")
    client.xgroup_create("charges", "shop", id="0")
    client.xreadgroup("shop", "host-12-0123abcd", {"charges": ">"})
    client.xack("charges", "shop", f"{FIRST_MS}-0")
    waiting = ("XCLAIM", "charges", "shop", "waiting", 0, f"{FIRST_MS + 1}-0")
    client.execute_command(*waiting, "IDLE", 86_000_000, "RETRYCOUNT", 4)
    facts = {"_reason": "ValueError: card declined", "_traceback": "Traceback: ...", "_attempts": 8}
    origin = {"_source_stream": "charges", "_source_id": f"{FIRST_MS}-0", "_group": "shop"}
    client.xadd("charges:dead", {"amount": 0} | facts | origin | {"_consumer": "host-12-0123abcd"})


def fill(client: Any) -> None:
    """A long stream with groups, a stream of unusual values, a pipeline, and a handler of workers."""
    pipeline: Any = client.pipeline(transaction=False)
    for number in range(ENTRIES):
        pipeline.execute_command(
            *("XADD", "orders", f"{FIRST_MS + number * STEP_MS}-0"),
            *("sku", f"A{number % 50}", "qty", number % 7, "n", number),
        )
        if number % PIPELINED == PIPELINED - 1:
            pipeline.execute()
    pipeline.execute()
    client.xdel("orders", f"{FIRST_MS + 3 * STEP_MS}-0")
    client.xgroup_create("orders", "packers", id="0")
    client.xgroup_create("orders", "auditors", id="$")
    client.xreadgroup("packers", "ann", {"orders": ">"}, count=20)
    client.xadd(
        "evil", {"payload": EVIL, "json": '{"id": 9007199254740993, "html": "<b>"}'}, id=LARGEST_ID
    )
    client.xadd(ODD_NAME, {"a": "1"})
    for number in range(320):
        more = {"note": "calibrated"} if number == 4 else {}
        fields = {"temp": 20 + number % 5, "humid": 60 + number % 9} | more
        client.xadd("sensors", fields, id=f"{FIRST_MS + 990 * number}-0")
    client.xdel("sensors", f"{FIRST_MS + 990}-0", f"{FIRST_MS + 990 * 3}-0")
    client.xadd("live", {"n": "0"})
    for batch in range(3):
        for output, rows in (("bronze", 101), ("silver", 100), ("reject", 1)):
            told = {"pipeline": "shop", "output": output, "batch": batch, "rows": rows, "read": 101}
            told |= {"query": "main", "source": "orders", "seconds": 0.5, "lag": 7, "pending": 0}
            client.xadd("penstock:metrics", told | {"rows_per_second": 200.0})
    fill_workers(client)
    client.xadd("orders:rejected", {"_reason": "qty_positive", "raw": "x"})
