"""`penstock.build.KIND` names the build that was loaded."""

from __future__ import annotations

import os

import pytest

from penstock.build import KIND
from penstock.core import stream


def test_kind_follows_from_the_file_that_was_loaded() -> None:
    expected = "interpreted" if str(stream.__file__).endswith(".py") else "compiled"
    assert expected == KIND


@pytest.mark.skipif("PENSTOCK_EXPECT" not in os.environ, reason="no build was asked for")
def test_kind_is_the_build_under_test() -> None:
    assert os.environ["PENSTOCK_EXPECT"] == KIND
