"""The log has one line per message, whatever the message quotes."""

from __future__ import annotations

import json
import logging
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


def test_messages_as_json(tmp_path: Path, path: Path) -> None:
    found = tmp_path / "json.log"
    log.start(str(found), "json")
    log.LOG.warning("file %s", 'a"\x1b[31m\nbé')
    try:
        raise ValueError("broken")
    except ValueError:
        log.LOG.exception("failed")
    first, second = map(json.loads, found.read_text().splitlines())
    assert (first["level"], first["message"]) == ("warning", 'file a"\\x1b[31m\\x0abé')
    assert list(first) == ["time", "level", "pid", "message"]
    assert first["time"].endswith("Z")
    assert second["traceback"].endswith("ValueError: broken")


def test_levels_have_the_names_of_redis() -> None:
    levels = (logging.DEBUG, log.VERBOSE, logging.INFO, logging.ERROR)
    assert [log._level_name(level) for level in levels] == [
        *("debug", "verbose", "notice", "warning"),
    ]


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path, path: Path) -> None:
    log.LOG.warning("one")
    path.rename(tmp_path / "old.log")
    log.LOG.warning("two")
    assert path.read_text().endswith("# two\n")
    assert (tmp_path / "old.log").read_text().endswith("# one\n")
