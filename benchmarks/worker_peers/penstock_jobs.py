"""Jobs of penstock: `python penstock_jobs.py COUNT`, then `penstock worker penstock_jobs:app`."""

import sys

import _job

from penstock.work import App

app = App(_job.URL, group="bench")


@app.on("jobs")
async def job(number: int) -> None:
    _job.run(number)


if __name__ == "__main__":
    for each in _job.numbers(int(sys.argv[1])):
        job.send(each)
