"""The hex in docs/formats/rdb.md is what the code writes."""

from __future__ import annotations

import ast
import re

import pytest

from penstock.persist.rdb.dump import SEAL_BYTES, dump_value
from penstock.persist.rdb.output import RdbOutput
from penstock.persist.rdb.writer import RdbWriter, write_databases
from tests.support.engine.engines import START_MS, Bench
from tests.support.rdb.whole_files import read_all
from tests.support.source_tree import ROOT

DOCUMENT = (ROOT / "docs" / "formats" / "rdb.md").read_text()
STRINGS = re.findall(r"^\| `(b\".+?)` \| `([0-9a-f ]+)` \|$", DOCUMENT, re.MULTILINE)
SESSION = re.findall(r"^    ([A-Z]+ [^(\n]+)", DOCUMENT, re.MULTILINE)


def shown(kind: str) -> bytes:
    (block,) = re.findall(rf"```{kind}\n(.*?)```", DOCUMENT, re.DOTALL)
    lines = (line.split("#")[0].replace("|", " ") for line in block.splitlines())
    return bytes.fromhex(" ".join(lines))


def test_the_file_of_the_document_is_what_its_session_leaves() -> None:
    bench = Bench("7.0")
    bench.engine.context.keyspace.clear()
    assert bench.clock.at_ms == START_MS
    for line in SESSION:
        bench.ask(line.strip())
    chunks: list[bytes] = []
    writer = RdbWriter(chunks.append, 10, compress=False)
    writer.begin({b"redis-ver": b"7.0.15"})
    write_databases(writer, bench.engine.context.databases)
    writer.end()
    assert b"".join(chunks).hex(" ") == shown("rdb").hex(" ")
    assert [item.key for item in read_all(shown("rdb"))] == [b"n", b"l", b"s"]


def test_the_stream_of_redis_8_is_what_its_session_leaves() -> None:
    bench = Bench("8.8")
    (session,) = re.findall(r"```session\n(.*?)```", DOCUMENT, re.DOTALL)
    for line in session.splitlines():
        bench.ask(line)
    body = dump_value(bench.stream(), 14, compress=False)[:-SEAL_BYTES]
    assert body[-len(shown("stream")) :].hex(" ") == shown("stream").hex(" ")


def test_the_payload_of_the_document() -> None:
    assert dump_value(b"17", 10) == shown("payload")


@pytest.mark.parametrize(("text", "stored"), STRINGS)
def test_a_string_of_the_document(text: str, stored: str) -> None:
    content, _, times = text.partition(" * ")
    chunks: list[bytes] = []
    output = RdbOutput(chunks.append, True, False)
    output.string(ast.literal_eval(content) * int(times or 1))
    output.flush()
    assert b"".join(chunks).hex(" ") == stored


def test_all_of_them_were_found() -> None:
    assert len(SESSION) == 5
    assert len(STRINGS) == 6
