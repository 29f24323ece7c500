"""The examples of docs/formats/aof.md are what the code reads and writes."""

from __future__ import annotations

import io
import re

from penstock.core.frame import Frame
from penstock.engine.clock import ManualClock
from penstock.engine.execute import TABLE, Engine
from penstock.persist.aof.batch import encode_batch
from penstock.persist.aof.journal import Journal
from penstock.persist.aof.manifest import LogFile, Manifest, encode_manifest, parse_manifest
from penstock.persist.aof.replay import Replay
from tests.support.source_tree import ROOT

PAGE = (ROOT / "docs" / "formats" / "aof.md").read_text()


def block(name: str) -> str:
    found = re.search(rf"```{name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_manifest_is_what_we_write_and_read() -> None:
    manifest = Manifest(
        LogFile("appendonly.aof.2.base.rdb", 2), (LogFile("appendonly.aof.2.incr.aof", 2),)
    )
    assert encode_manifest(manifest).decode() == block("manifest")
    assert parse_manifest(block("manifest").encode(), "m") == manifest


def test_the_increment_is_what_an_xadd_leaves() -> None:
    engine = Engine(ManualClock(1_700_000_000_000))
    journal = Journal()
    engine.context.effects = journal
    frame = Frame()
    for word in b"XADD s * temp 21".split():
        frame.add(word)
    engine.execute(TABLE["XADD"], frame)
    data = journal.take()
    assert (encode_batch(data, 0, 0) + data).decode() == block("increment").replace("\n", "\r\n")


def test_the_increment_makes_the_entry_again() -> None:
    engine = Engine()
    source = io.BytesIO(block("increment").replace("\n", "\r\n").encode())
    Replay(engine, TABLE.values()).run(source, "page")
    stream = engine.context.databases[0].stream_or_none(b"s")
    assert stream is not None
    assert stream.range().entries() == [(b"1700000000000-0", [b"temp", b"21"])]
