"""Jobs of dramatiq: `python dramatiq_jobs.py COUNT`, then `dramatiq dramatiq_jobs -p 1`."""

import sys

import _job
import dramatiq
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=_job.URL)
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="job")
def job(number):
    _job.run(number)


if __name__ == "__main__":
    for each in _job.numbers(int(sys.argv[1])):
        job.send(each)
