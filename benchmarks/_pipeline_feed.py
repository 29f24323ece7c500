"""Adds orders to a stream at a constant rate.

python benchmarks/_pipeline_feed.py PORT RATE SECONDS
"""

from __future__ import annotations

import sys
import time

import redis
from _spark_work import STREAM, fields_of

PAUSE_SECONDS = 0.01


def main() -> None:
    port, rate, seconds = map(int, sys.argv[1:])
    began = time.monotonic()
    number = 0
    with redis.Redis(port=port) as client:
        while number < rate * seconds:
            due = min(rate * seconds, int((time.monotonic() - began) * rate))
            adding = client.pipeline(transaction=False)
            for one in range(number, due):
                adding.execute_command("XADD", STREAM, "*", *fields_of(one))
            adding.execute()
            number = due
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
