"""Screenshots for the docs, taken by the browser tests if PENSTOCK_SCREENSHOTS is 1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tests.support.servers.penstock_server import PenstockServer
from tests.support.source_tree import ROOT

PICTURES = os.environ.get("PENSTOCK_SCREENSHOTS") == "1"
IMAGES = ROOT / "docs" / "images"
SECONDS = 20
# The queries of a pipeline, and the share of its entries that each output gets.
QUERIES = {
    "main": {"bronze": 1, "silver": 0.98, "reject": 0.02},
    "revenue_by_minute": {"revenue_by_minute": 0.03, "revenue_by_minute.stream": 0.03},
}


def screenshot(page: Any, name: str, height: int) -> None:
    """The page at 1280 pixels."""
    IMAGES.mkdir(exist_ok=True)
    page.set_viewport_size({"width": 1280, "height": height})
    page.wait_for_timeout(1000)  # charts follow the size
    page.screenshot(path=IMAGES / f"{name}.png")


def take_picture(page: Any, address: str, server: PenstockServer, path: str) -> None:
    """Take a screenshot of a page, if the docs have one, with data on it."""
    pictures = {
        "/overview": overview_picture,
        "/stream": entry_picture,
        "/groups": groups_picture,
        "/pipeline": pipeline_picture,
    }
    picture = pictures.get(path.partition("?")[0])
    if picture is not None:
        with server.client() as client:
            picture(page, address, client)


def seconds(page: Any) -> Iterator[int]:
    for second in range(SECONDS):
        yield second
        page.wait_for_timeout(1000)


def bustle(page: Any, server: PenstockServer) -> None:
    """Streams that grow at different rates, and a group that reads."""
    with server.client() as client:
        for stream in ("clicks", "payments"):
            client.xgroup_create(stream, "workers", id="0", mkstream=True)
        for second in seconds(page):
            for _ in range(40 + 30 * (second % 7)):
                client.xadd("clicks", {"page": "/cart", "user": second})
            for _ in range(9 * (second % 4)):
                client.xadd("payments", {"amount": second})
            client.xreadgroup("workers", "w1", {"clicks": ">"}, count=120)
            client.xreadgroup("workers", "w1", {"payments": ">"}, count=100, noack=True)


def overview_picture(page: Any, address: str, client: Any) -> None:
    for group in ("billing", "mail", "search"):
        client.xgroup_create("sales", group, id="0", mkstream=True)
    facts = {"_reason": "ValueError: card declined", "_source_stream": "sales", "_group": "billing"}
    client.xadd("sales:dead", facts | {"amount": "12", "_source_id": "1-0", "_attempts": "5"})
    for second in seconds(page):
        for number in range(40 + 15 * (second % 5)):
            client.xadd("sales", {"n": number})
        client.xreadgroup("search", "s1", {"sales": ">"}, noack=True)
        client.xreadgroup("billing", "b1", {"sales": ">"}, count=20 + 9 * (second % 5))
        first = client.xpending_range("sales", "billing", "-", "+", 1)[0]["message_id"]
        client.execute_command("XCLAIM", "sales", "billing", "b1", 0, first, "IDLE", 4_200_000)
    screenshot(page, "overview", 800)


def entry_picture(page: Any, address: str, client: Any) -> None:
    for number in range(30):
        body = f'{{"customer": {{"id": {number % 7}, "vip": true}}, "total": {9.5 * number}}}'
        client.xadd(
            "checkout", {"order": f"A-{1000 + number}", "body": body, "raw": b"\x00\xff\x10"}
        )
    page.goto(f"{address}/stream?name=checkout")
    page.locator("tbody button.open").nth(3).click()
    page.get_by_role("dialog").wait_for()
    screenshot(page, "entry", 640)


def groups_picture(page: Any, address: str, client: Any) -> None:
    for group in ("billing", "mail", "search"):
        client.xgroup_create("invoices", group, id="0", mkstream=True)
    page.goto(f"{address}/groups?name=invoices")
    for second in seconds(page):
        for number in range(60):
            client.xadd("invoices", {"n": number})
        client.xreadgroup("search", "s1", {"invoices": ">"}, noack=True)
        client.xreadgroup("billing", "b1", {"invoices": ">"}, count=20 + 9 * (second % 5))
        client.xreadgroup("mail", "m1", {"invoices": ">"}, count=55, noack=second > 2)
    screenshot(page, "groups", 1120)


def pipeline_picture(page: Any, address: str, client: Any) -> None:
    page.goto(f"{address}/pipeline?only=orders")
    origin = {"_source_stream": "orders", "_source_id": "1700000000000-0"}
    for second in seconds(page):
        for number in range(40):
            client.xadd("orders", {"sku": f"A{number}", "qty": second})
        for place, (query, outputs) in enumerate(QUERIES.items()):
            read = 900 - 100 * place + 15 * (second * (place + 3) % 11)
            told = {"pipeline": "orders", "query": query, "source": "orders", "batch": second}
            told |= {"read": read, "seconds": 0.2 + read / 5000, "pending": 0}
            told |= {"rows_per_second": read / (0.2 + read / 5000)}
            told |= {"lag": 90 * place + 8 * (second * 3 % 7)}
            for output, share in outputs.items():
                rows = {"output": output, "rows": int(read * share)}
                client.xadd("penstock:metrics", told | rows)
        if second % 7 == 3:
            reason = {"_reason": ("qty_positive", "parse:price")[second % 2]}
            client.xadd("orders:rejected", {"sku": "A7", "qty": -second} | reason | origin)
    screenshot(page, "pipeline", 900)
