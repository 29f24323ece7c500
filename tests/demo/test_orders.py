"""The orders of the demonstration depend only on the seed, and are malformed as they claim."""

from __future__ import annotations

from decimal import Decimal

from penstock.demo.orders import REASONS, Order, Share, Tally, orders_of

ORDERS = 20_000


def orders(producers: int = 1, seed: int = 1) -> list[Order]:
    return [
        order
        for producer in range(producers)
        for order in orders_of(Share(seed, producer, producers, ORDERS))
    ]


def reason_of(fields: dict[str, str]) -> str | None:
    """The first reason for which the pipeline would reject the order."""
    if not fields["qty"].isdigit():
        return "parse:qty"
    if "sku" not in fields:
        return "has_sku"
    if int(fields["qty"]) <= 0:
        return "qty_positive"
    return None if Decimal(fields["price"]) > 0 else "price_positive"


def test_orders_depend_only_on_the_seed() -> None:
    assert orders() == orders()
    assert orders() != orders(seed=2)


def test_producers_share_the_orders() -> None:
    ids = [order.fields["order_id"] for order in orders(producers=3)]
    assert sorted(ids) == sorted(order.fields["order_id"] for order in orders())


def test_every_order_has_the_reason_it_claims() -> None:
    made = orders()
    assert [reason_of(order.fields) for order in made] == [order.reason for order in made]
    assert {order.reason for order in made} == {None, *REASONS}
    assert any(order.is_late for order in made)


def test_a_tally_adds_up() -> None:
    one, total = Tally(), Tally()
    for number, order in enumerate(orders()):
        one.count(order)
        if number % 7_000 == 0:
            total.add(one)
            one = Tally()
    total.add(one)
    whole = Tally()
    for order in orders():
        whole.count(order)
    assert total == whole
    assert whole.orders == ORDERS
    assert whole.valid_cents == sum(order.cents for order in orders() if order.reason is None)
