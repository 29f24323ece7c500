"""Jobs of arq: `python arq_jobs.py COUNT`, then `arq arq_jobs.WorkerSettings`."""

import asyncio
import sys

import _job
from arq import create_pool
from arq.connections import RedisSettings


async def job(_context, number):
    _job.run(number)


class WorkerSettings:
    functions = [job]  # noqa: RUF012 - arq reads this attribute of the class
    redis_settings = RedisSettings.from_dsn(_job.URL)
    keep_result = 0
    max_jobs = 100


async def send(count):
    pool = await create_pool(WorkerSettings.redis_settings)
    for each in _job.numbers(count):
        await pool.enqueue_job("job", each)
    await pool.close()


if __name__ == "__main__":
    asyncio.run(send(int(sys.argv[1])))
