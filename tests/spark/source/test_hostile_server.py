"""`penstock pipeline check` reports every wrong answer of a server on one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.support.servers.hostile_server import REPEATED, REPLIES, hostile

FILE = """[source]
url = "{url}"
stream = "s"
group = "g"

[archive]
path = "{place}/lake"
"""


@pytest.mark.parametrize("name", [*REPLIES, *REPEATED])
def test_a_check_reports_a_server_that_answers_wrongly(name: str, tmp_path: Path) -> None:
    check = pytest.importorskip("penstock.spark.pipeline.server_check", reason=NO_PYSPARK)
    file = pytest.importorskip("penstock.spark.pipeline.definition.file", reason=NO_PYSPARK)
    with hostile(REPLIES.get(name, b""), answers=REPEATED.get(name, b"")) as server:
        path = tmp_path / "p.toml"
        path.write_text(FILE.format(url=server.url, place=tmp_path))
        pipeline, _ = file.read_pipeline(str(path))
        assert pipeline is not None
        problems = check.server_problems(pipeline)
    assert problems
    assert all("\n" not in problem.text for problem in problems)
