"""`penstock.build.KIND` names the build that was loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.build import KIND
from penstock.core import stream
from tests.support.source_tree import ROOT


def test_kind_follows_from_the_file_that_was_loaded() -> None:
    expected = "interpreted" if str(stream.__file__).endswith(".py") else "compiled"
    assert expected == KIND


@pytest.mark.skipif("PENSTOCK_EXPECT" not in os.environ, reason="no build was asked for")
def test_kind_is_the_build_under_test() -> None:
    assert os.environ["PENSTOCK_EXPECT"] == KIND


def test_a_missing_compiler_is_an_error_where_it_is_required() -> None:
    environment = {**os.environ, "CC": "no-such-compiler", "PENSTOCK_REQUIRE_COMPILED": "1"}
    done = subprocess.run(
        [sys.executable, "setup.py", "--name"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "PENSTOCK_REQUIRE_COMPILED=1 needs a compiler" in done.stderr
