"""Jobs of Celery: `python celery_jobs.py COUNT`, then `celery -A celery_jobs worker -c 1`."""

import sys

import _job
from celery import Celery

app = Celery("celery_jobs", broker=_job.URL)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task
def job(number):
    _job.run(number)


if __name__ == "__main__":
    with app.producer_or_acquire() as producer:
        for each in _job.numbers(int(sys.argv[1])):
            app.send_task("celery_jobs.job", (each,), producer=producer)
