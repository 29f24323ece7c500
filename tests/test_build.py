"""The package knows which build it is."""

from __future__ import annotations

import os

import pytest

from penstock.build import KIND
from penstock.core import stream


def test_kind_is_read_off_the_file_that_was_loaded() -> None:
    expected = "interpreted" if str(stream.__file__).endswith(".py") else "compiled"
    assert expected == KIND


@pytest.mark.skipif("PENSTOCK_EXPECT" not in os.environ, reason="run by hand, so any build will do")
def test_kind_is_the_build_under_test() -> None:
    assert os.environ["PENSTOCK_EXPECT"] == KIND
