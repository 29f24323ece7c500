"""A pipeline with a table in PostgreSQL, whose driver or database is killed at the worst moments.

A lock on the table of records holds the driver between staging and commit. A function that blocks holds it
after the commit, before Spark notes the end of the batch.
"""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.targets.test_jdbc import ids, valid_ids
from tests.spark.pipeline.test_run import TEXT, add
from tests.support.campaign import SOAK
from tests.support.spark.databases import (
    PostgresServer,
    need_databases,
    running_postgres,
    wait_until,
)
from tests.support.spark.pipeline_process import PipelineProcess

pytest.importorskip("pyspark", reason=NO_PYSPARK)

BLOCKING = """
import time
from pathlib import Path

def wait(frame, batch):
    while Path(__file__).with_name("hold").exists():
        time.sleep(0.05)
"""
WAIT = '\n[[output]]\nname = "wait"\ncall = "blocking:wait"\n'


class Campaign:
    """One pipeline, its database and its entries."""

    def __init__(self, broker: Broker, server: PostgresServer, folder: Path) -> None:
        self.broker = broker
        self.server = server
        self.database = server.database
        self.hold = folder / "hold"
        (folder / "blocking.py").write_text(BLOCKING)
        section = self.database.section("orders")
        text = TEXT.replace("{trim}", "never") + section + WAIT
        self.file = folder / "shop.toml"
        self.file.write_text(text.replace("{url}", "${PENSTOCK_URL}"))

    def run(self, *words: str) -> PipelineProcess:
        url = self.broker.options["url"]
        return PipelineProcess(self.file, url, "--master", "local[2]", *words)

    def finish(self) -> None:
        process = self.run("--once")
        assert process.wait() == 0, process.log.read_text()[-2000:]
        assert ids(self.database) == valid_ids(self.broker)
        assert not [one for one in self.database.tables() if "staging" in one]

    def is_staged(self) -> bool:
        return any("staging" in one for one in self.database.tables())

    def is_committed(self) -> bool:
        return self.database.ask("select count(*) from orders") == [(5,)]


@pytest.mark.skipif(
    not SOAK, reason="starts three Sparks: make soak; test_jdbc fails at the same moments"
)
@pytest.mark.parametrize("moment", ["committed", "staged", "database"])
def test_a_killed_driver_or_database_loses_and_doubles_nothing(
    penstock: Broker, tmp_path: Path, moment: str
) -> None:
    need_databases()
    with running_postgres() as server:
        campaign = Campaign(penstock, server, tmp_path)
        add(penstock, 0)
        campaign.finish()
        for minute in range(1, 5):
            add(penstock, minute)
        if moment == "committed":
            campaign.hold.touch()
            process = campaign.run()
            wait_until(campaign.is_committed)
            process.kill()
            campaign.hold.unlink()
        else:
            stop_between_staging_and_commit(campaign, kill_database=moment == "database")
        add(penstock, 6)
        campaign.finish()


def stop_between_staging_and_commit(campaign: Campaign, kill_database: bool) -> None:
    with closing(campaign.database.connection()) as holder:  # no commit: its server may be gone
        holder.autocommit = False
        holder.execute("lock table penstock_batches in share mode")  # readers pass, writers wait
        process = campaign.run()
        wait_until(campaign.is_staged)
        waiting = "select count(*) from pg_locks where not granted"
        wait_until(lambda: campaign.database.ask(waiting) == [(1,)])
        if not kill_database:
            process.kill()
            return
        ended = threading.Thread(target=process.wait)
        ended.start()
        campaign.server.kill()
    campaign.server.start()
    ended.join()
    error = process.log.read_text().strip().split("\n")[-1]
    assert error.startswith("penstock: output warehouse: "), error
