"""Jobs of taskiq: `python taskiq_jobs.py COUNT`, then `taskiq worker taskiq_jobs:broker -w 1`."""

import asyncio
import sys

import _job
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(_job.URL)


@broker.task("job")
async def job(number: int) -> None:
    _job.run(number)


async def send(count: int) -> None:
    await broker.startup()
    for each in _job.numbers(count):
        await job.kiq(each)
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(send(int(sys.argv[1])))
