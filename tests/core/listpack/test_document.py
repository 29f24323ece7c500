"""The hex in docs/formats/listpack.md equals what the code writes."""

from __future__ import annotations

import ast
import re

import pytest

from penstock.core import listpack
from penstock.errors import CorruptData
from tests.support.source_tree import ROOT
from tests.support.structures.listpacks import pack

DOCUMENT = (ROOT / "docs" / "formats" / "listpack.md").read_text()
DOCUMENTED_LISTPACKS = re.findall(r"```listpack\n(\[[^\n]*\])\n(.*?)```", DOCUMENT, re.DOTALL)
DOCUMENTED_ELEMENTS = re.findall(r"^\| `(.+?)` \| `([0-9a-f. ]+)` \|", DOCUMENT, re.MULTILINE)
DOCUMENTED_DAMAGE = re.findall(r"\| `([0-9a-f ]+)` \| (\d+) \|$", DOCUMENT, re.MULTILINE)


def documented_value(text: str) -> bytes | int:
    """Parse a value of the document: 5, "five", or "x" * 5."""
    content, _, times = text.partition(" * ")
    value = ast.literal_eval(content)
    return value if isinstance(value, int) else value.encode() * int(times or 1)


@pytest.mark.parametrize(("elements", "dump"), DOCUMENTED_LISTPACKS)
def test_a_listpack_of_the_document_has_the_bytes_it_shows(elements: str, dump: str) -> None:
    shown = b"".join(
        bytes.fromhex(line.split("#")[0].replace("|", " ")) for line in dump.splitlines()
    )
    values = [v.encode() if isinstance(v, str) else v for v in ast.literal_eval(elements)]
    assert pack(*values) == shown


@pytest.mark.parametrize(("value", "shown"), DOCUMENTED_ELEMENTS)
def test_an_element_of_the_document_has_the_bytes_it_shows(value: str, shown: str) -> None:
    start, dots, end = shown.partition("..")
    element = pack(documented_value(value))[listpack.HEADER_BYTES : -1]
    if dots:
        assert element.startswith(bytes.fromhex(start))
        assert element.endswith(bytes.fromhex(end))
    else:
        assert element == bytes.fromhex(shown)


@pytest.mark.parametrize(("data", "offset"), DOCUMENTED_DAMAGE)
def test_damage_of_the_document_is_reported_at_the_offset_it_states(data: str, offset: str) -> None:
    with pytest.raises(CorruptData) as raised:
        listpack.validate(bytes.fromhex(data))
    assert raised.value.offset == int(offset)


def test_the_document_shows_every_encoding() -> None:
    leads = {int(shown[:2], 16) for _, shown in DOCUMENTED_ELEMENTS}
    masks = [
        (0x80, 0),
        (0xC0, 0x80),
        (0xE0, 0xC0),
        (0xF0, 0xE0),
        *((0xFF, x) for x in range(0xF0, 0xF5)),
    ]
    assert all(any(lead & mask == kind for lead in leads) for mask, kind in masks)
    assert len(DOCUMENTED_LISTPACKS) >= 3
    assert len(DOCUMENTED_DAMAGE) >= 5
