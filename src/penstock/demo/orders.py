"""Generates the orders of the demonstration from a seed. Some are malformed, some are late.

The shop is open for two hours with two rushes, and order i of n has a fixed time in it. A malformed order
violates the schema or one condition of the pipeline in exactly one way, so that rejects can be counted by
reason.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

OPENING = datetime(2026, 1, 5, 9, tzinfo=UTC)
OPEN_SECONDS = 2 * 3600
JITTER_SECONDS = 20
RUSH = 0.05  # below 1/(4 pi), so that times increase
LATE_SHARE = 0.005
LATE_MINUTES = (30, 90)
MALFORMED_SHARE = 0.01
CUSTOMERS = 5_000
SKUS = tuple(f"{shelf}{number}" for shelf in "ABCDEFGH" for number in range(1, 6))

# How an order is malformed: the reason for which the pipeline rejects it.
REASONS = ("parse:qty", "has_sku", "qty_positive", "price_positive")


class Order(NamedTuple):
    """One order: its fields, and what the accounts need to know about it."""

    fields: dict[str, str]
    reason: str | None
    is_late: bool
    cents: int


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the orders that one producer sends."""

    seed: int
    producer: int
    producers: int
    orders: int


@dataclass(slots=True)
class Tally:
    """Totals of the orders sent, for the accounts."""

    orders: int = 0
    late: int = 0
    valid_cents: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    def count(self, order: Order) -> None:
        """Add an order."""
        self.orders += 1
        self.late += order.is_late
        if order.reason is None:
            self.valid_cents += order.cents
        else:
            self.rejected[order.reason] = self.rejected.get(order.reason, 0) + 1

    def add(self, other: Tally) -> None:
        """Add the totals of another producer."""
        self.orders += other.orders
        self.late += other.late
        self.valid_cents += other.valid_cents
        for reason, count in other.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count


def orders_of(share: Share) -> Iterator[Order]:
    """The orders of one producer, in the order they are sent."""
    dice = random.Random(f"{share.seed}/{share.producer}")
    for number in range(share.producer, share.orders, share.producers):
        yield _order(dice, number, share.orders)


def _order(dice: random.Random, number: int, orders: int) -> Order:
    seconds = OPEN_SECONDS * _time_of_day(number / orders) + dice.random() * JITTER_SECONDS
    is_late = dice.random() < LATE_SHARE
    if is_late:
        seconds -= 60 * dice.uniform(*LATE_MINUTES)
    at = OPENING + timedelta(seconds=seconds)
    qty, cents = dice.randint(1, 5), dice.randint(199, 9_999)
    fields = {
        "order_id": f"o{number:07d}",
        "sku": dice.choice(SKUS),
        "qty": str(qty),
        "price": f"{cents // 100}.{cents % 100:02d}",
        "customer": f"c{dice.randrange(CUSTOMERS):04d}",
        "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    reason = dice.choice(REASONS) if dice.random() < MALFORMED_SHARE else None
    if reason is not None:
        _spoil(fields, reason)
    return Order(fields, reason, is_late, qty * cents)


def _time_of_day(part: float) -> float:
    """The time at which a part of the orders has been placed. Increases at a varying rate."""
    return part + RUSH * math.sin(4 * math.pi * part)


def _spoil(fields: dict[str, str], reason: str) -> None:
    match reason:
        case "parse:qty":
            fields["qty"] = "two"
        case "has_sku":
            del fields["sku"]
        case "qty_positive":
            fields["qty"] = "0"
        case _:
            fields["price"] = f"-{fields['price']}"
