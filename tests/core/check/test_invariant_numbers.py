"""The numbers of invariants, such as L1 or N3, are unique, and checks name only numbers that exist."""

from __future__ import annotations

import re

import pytest

from penstock.core import check
from tests.support.source_tree import PACKAGE

DIRECTORIES = (".",)
DEFINED = re.compile(r"^ +([A-Z]{1,2}\d+)  [\w`]", re.M)
NAMED_BY_A_CHECK = re.compile(r'"([A-Z]{1,2}\d+)"')


def definitions() -> list[tuple[str, str]]:
    """Every number and the file whose essay defines it."""
    return [
        (number, str(path.relative_to(PACKAGE)))
        for directory in DIRECTORIES
        for path in sorted((PACKAGE / directory).rglob("*.py"))
        for number in DEFINED.findall(path.read_text().split('"""')[1])
    ]


def test_every_invariant_has_a_number_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for number, path in definitions():
        homes.setdefault(number, []).append(path)
    assert len(homes) > 40
    assert {number: paths for number, paths in homes.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("path", ["core/check.py", "core/rax/view.py"])
def test_a_check_names_only_invariants_that_exist(path: str) -> None:
    named = set(NAMED_BY_A_CHECK.findall((PACKAGE / path).read_text()))
    assert named
    assert named <= {number for number, _ in definitions()}


def test_the_essay_of_the_checks_mentions_only_invariants_that_exist() -> None:
    mentioned = set(re.findall(r"\b[A-Z]\d\b", str(check.__doc__)))
    assert mentioned <= {number for number, _ in definitions()}


def test_every_invariant_of_the_essays_is_known_to_check() -> None:
    stated = {
        number
        for name in (
            "listpack",
            "rax/tree",
            "rax/heap",
            "stream_node",
            "stream",
            "groups/group",
            "groups/pending_index",
            "groups/pending_list",
            "idempotency",
            "list_value",
        )
        for number in re.findall(
            r"^  ([A-Z]{1,2}\d)  ", (PACKAGE / "core" / f"{name}.py").read_text(), re.M
        )
    }
    assert {number[:-1] for number in stated} == {*"LRNSGXDQ", "PL"}
    ranges = re.findall(r"([LRNSGXDQ]|PL)(\d) to [A-Z]*(\d)", str(check.__doc__))
    known = {f"{letter}{n}" for letter, low, high in ranges for n in range(int(low), int(high) + 1)}
    known |= set(re.findall(r"\b[LRNSGXDQ]\d\b", str(check.__doc__)))
    assert stated <= known
