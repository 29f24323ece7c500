"""Jobs of rq: `python rq_jobs.py COUNT`, then `rq worker`, which forks for each job."""

import sys

import _job
from redis import Redis
from rq import Queue


def job(number):
    _job.run(number)


if __name__ == "__main__":
    queue = Queue(connection=Redis.from_url(_job.URL))
    for each in _job.numbers(int(sys.argv[1])):
        queue.enqueue("rq_jobs.job", each, result_ttl=0)
