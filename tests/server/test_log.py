"""The log has one line per message, whatever the message quotes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.server import log


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "penstock.log"
    log.start(str(found))
    yield found
    for handler in log.LOG.handlers[:]:
        log.LOG.removeHandler(handler)
        handler.close()
    log.LOG.propagate = True


def test_control_characters_are_escaped(path: Path) -> None:
    log.LOG.warning("file %s", "a\x1b[31m\nb\x9b\x7f")
    [line] = path.read_text().splitlines()
    assert line.endswith(r" # file a\x1b[31m\x0ab\x9b\x7f")


def test_bytes_that_are_not_utf8_are_escaped(path: Path) -> None:
    handler = log.LOG.handlers[0]
    # Formatted directly: pytest-xdist could not send the captured text to its controller.
    record = log.LOG.makeRecord("", log.VERBOSE, "", 0, "file %s", ("a\udcff",), None)
    assert handler.format(record).endswith(r" - file a\xff")


def test_a_traceback_keeps_its_lines(path: Path) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        log.LOG.exception("failed")
    assert path.read_text().splitlines()[-1] == "ValueError: broken"
    assert len(path.read_text().splitlines()) > 2
