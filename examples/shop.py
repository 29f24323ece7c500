"""Orders, payments and mail with penstock.work: what fails is tried again, what cannot work is set aside.

python examples/shop.py            runs everything in memory, in a second of real time
penstock worker shop:app           runs it for real, in this directory; PENSTOCK_URL names the server
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass

from penstock.work import App, Dead, Message, per_second

app = App(os.environ.get("PENSTOCK_URL", "memory:"), group="shop")
ledger = sqlite3.connect(os.environ.get("SHOP_LEDGER", ":memory:"), check_same_thread=False)
ledger.execute("CREATE TABLE IF NOT EXISTS payments (number INTEGER, cents INTEGER)")
ledger.commit()


@dataclass
class Order:
    number: int
    customer: str
    cents: int


@dataclass
class Mail:
    to: str
    text: str


class BankIsDown(Exception):
    """Comes and goes."""


@app.on("orders", key="customer", attempts=5, backoff=(1, 60))
def charge(order: Order, msg: Message) -> None:
    """Charge one order; the orders of a customer run one after the other."""
    if order.cents <= 0:
        raise Dead(f"an order of {order.cents} cents")
    if order.number % 3 == 0 and msg.attempt == 1:
        raise BankIsDown("try again")
    with msg.once(ledger) as new:
        if new:  # false if an earlier attempt was charged and died before it was settled
            ledger.execute("INSERT INTO payments VALUES (?, ?)", (order.number, order.cents))
    # The mail is there if and only if this order is settled.
    msg.send("mail", Mail(order.customer, f"Order {order.number} is paid."))


@app.on("mail", rate=per_second(50), timeout=10)
async def post(mail: Mail) -> None:
    """Send one mail; more than 50 a second would upset the mail server."""
    if "@" not in mail.to:
        raise Dead(f"{mail.to!r} is no address")


@app.every("0 6 * * *", tz="Europe/Berlin")
def report(msg: Message) -> None:
    """Every morning, by one worker."""
    [(count, cents)] = ledger.execute("SELECT count(*), coalesce(sum(cents), 0) FROM payments")
    msg.send("mail", Mail("boss@example.com", f"{count} payments, {cents} cents"))


def main() -> None:
    with app.test() as t:
        for number in range(1, 7):
            charge.send(Order(number, f"c{number % 2}@example.com", 100 * number))
        charge.send(Order(7, "c7@example.com", -5))
        charge.send(Order(8, "nobody", 800), delay=3600)
        attempts = t.run()
        t.advance(2)  # the retries
        attempts += t.run()
        t.advance(24 * 3600)  # the delayed order, the report
        attempts += t.run()
        [(paid,)] = ledger.execute("SELECT count(*) FROM payments")
        print(f"{attempts} attempts, {paid} payments, {len(t.entries('mail'))} mails")
        for stream in ("orders", "mail"):
            for entry in t.dead(stream):
                print(f"dead in {stream}: {entry['_reason']}")


if __name__ == "__main__":
    main()
