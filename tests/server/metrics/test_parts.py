"""A scrape never holds the event loop for long, however many streams, groups and commands there are."""

from __future__ import annotations

import asyncio

from penstock.metrics.text import Page
from penstock.server.metrics.pace import PART_US_MAX, Pace
from penstock.server.metrics.streams import KEYS_AT_ONCE, add_streams
from tests.support.servers.connections import ServerBench
from tests.support.servers.loops import run_apart

STREAMS = 300
GROUPS = 300
STEP_US = 100


class StepClock:
    """Each reading is a little later than the one before."""

    def __init__(self) -> None:
        self.us = 0

    def __call__(self) -> int:
        self.us += STEP_US
        return self.us


async def scrape(bench: ServerBench) -> tuple[str, int]:
    """The text, and how often other work of the loop has run meanwhile."""
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(other_work())
    page = Page()
    await add_streams(page, bench.server, STREAMS, Pace(StepClock()))
    other.cancel()
    return page.text(), turns


def test_other_work_runs_between_two_parts() -> None:
    bench = ServerBench()
    client = bench.connect()
    for number in range(STREAMS):
        client.reply(f"XADD s{number} 1-0 k v")
    text, turns = run_apart(scrape(bench))
    assert text.count("penstock_stream_length{") == STREAMS
    steps = STREAMS + STREAMS // KEYS_AT_ONCE  # at least: each reads the clock
    assert turns >= steps * STEP_US // PART_US_MAX


def test_the_groups_of_one_stream_are_visited_in_parts() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("XADD s 1-0 k v")
    for number in range(GROUPS):
        client.reply(f"XGROUP CREATE s g{number:03} 0")

    async def scrape_while_groups_change() -> str:
        page, pace = Page(), Pace(StepClock())
        collecting = asyncio.create_task(add_streams(page, bench.server, STREAMS, pace))
        while not collecting.done():
            client.reply(f"XGROUP DESTROY s g{2 * pace.parts:03}")
            client.reply(f"XGROUP CREATE s h{pace.parts:03} 0")
            await asyncio.sleep(0)
        assert pace.parts >= GROUPS // 2 * STEP_US // PART_US_MAX
        return page.text()

    text = run_apart(scrape_while_groups_change())
    lags = [line for line in text.splitlines() if line.startswith("penstock_group_lag{")]
    assert GROUPS // 2 <= len(lags) == len(set(lags))


def test_streams_may_come_and_go_between_two_parts() -> None:
    bench = ServerBench()
    client = bench.connect()
    for number in range(STREAMS):
        client.reply(f"XADD s{number} 1-0 k v")
        client.reply(f"XGROUP CREATE s{number} g 0")

    async def scrape_while_keys_change() -> str:
        page = Page()
        pace = Pace(StepClock())
        collecting = asyncio.create_task(add_streams(page, bench.server, 10_000, pace))
        number = 0
        while not collecting.done():
            client.reply(f"DEL s{number}")
            client.reply(f"XADD t{number} 1-0 k v")
            number += 1
            await asyncio.sleep(0)
        assert pace.parts > 10
        return page.text()

    text = run_apart(scrape_while_keys_change())
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
