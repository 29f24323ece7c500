"""Manifests: earlier versions, which ones are valid, errors. Needs no Spark."""

from __future__ import annotations

import json

import pytest

from penstock.spark.lake.manifest import (
    ArchiveError,
    DataFile,
    Manifest,
    load_lake,
    load_newest_or_none,
    order_names,
    superseded,
)
from tests.support.source_tree import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "lake"


class TextFiles:
    """Files in memory, by path. Some vanish at the first read."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.instead: dict[str, dict[str, str]] = {}

    def names(self, directory: str) -> list[str]:
        heads = [path.rpartition("/") for path in self.texts]
        return [name for head, _, name in heads if head == directory]

    def read(self, path: str) -> str:
        if path in self.instead:
            self.texts = self.instead.pop(path)
        if path not in self.texts:
            raise FileNotFoundError(path)
        return self.texts[path]


def text_of(manifest: Manifest) -> str:
    return json.dumps(manifest.to_json())


def manifest(batch: int, generation: int = 0, *paths: str) -> Manifest:
    files = tuple(DataFile(path, 1, 10) for path in paths)
    return Manifest("q", batch, ("day",), {"type": "struct", "fields": []}, files, generation)


def files_of(*found: Manifest) -> TextFiles:
    return TextFiles({f"lake/{one.name}": text_of(one) for one in found})


def test_version_1_is_read_and_written_unchanged() -> None:
    texts = {f"lake/_manifest/{path.name}": path.read_text() for path in FIXTURES.iterdir()}
    lake = load_lake(TextFiles(texts), "lake")
    assert [(one.batch, one.generation, one.rows) for one in lake.manifests] == [
        *((6, 2, 70), (7, 0, 10))
    ]
    for one in lake.manifests:
        assert one.to_json() == json.loads(texts[f"lake/{one.name}"])
    assert lake.files[1].partition == "day=2026-11-16"


def test_the_base_of_the_highest_generation_and_later_batches_are_valid() -> None:
    names = ["base-0000000009-0000000003.json", "base-0000000010-0000000005.json", "_x.json.tmp"]
    names += [f"{batch:010d}.json" for batch in (12, 5, 6, 4, 100)]
    assert order_names(names) == (
        "base-0000000010-0000000005.json",
        ["0000000006.json", "0000000012.json", "0000000100.json"],
    )
    assert superseded(names, manifest(5, 10)) == [names[0], "0000000005.json", "0000000004.json"]
    assert order_names([]) == (None, [])


def test_manifests_replaced_while_reading_are_read_again() -> None:
    files = files_of(manifest(0, 0, "a"), manifest(1, 0, "b"))
    after = files_of(manifest(1, 1, "ab"))
    files.instead["lake/_manifest/0000000000.json"] = after.texts
    assert [file.path for file in load_lake(files, "lake").files] == ["ab"]
    newest = load_newest_or_none(files, "lake")
    assert newest is not None
    assert (newest.batch, newest.generation) == (1, 1)


def test_an_empty_directory_has_no_newest_manifest() -> None:
    assert load_newest_or_none(TextFiles({}), "lake") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is damaged: restore it"),
        ("[]", "is damaged"),
        ('{"version": 1}', "is damaged"),
        ('{"version": 2}', "has version 2, and this penstock reads version 1"),
    ],
)
def test_a_damaged_manifest_is_named(text: str, says: str) -> None:
    with pytest.raises(ArchiveError, match=f"lake/_manifest/0000000000.json {says}"):
        load_lake(TextFiles({"lake/_manifest/0000000000.json": text}), "lake")
