"""Plain English: phrases that made the text hard to read do not come back.

The list is a help, not the goal. It holds phrases that are wrong in nearly every place; text inside code, and
texts that are Redis's, are not looked at.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Files and folders whose text is checked: .md without its code, .py as a whole.
CHECKED = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "src", "tests"),
    *("benchmarks", "fuzz", "tools", "examples"),
)

# Their text comes from src and is checked there.
GENERATED = ("docs/commands.md", "docs/configuration.md")

# Phrase -> what to write instead.
BANNED = {
    r"whoever|whosoever": "the caller, the client, the user",
    r"so many(?! \w+ that)": "the number itself, or `count`",
    r"anew": "again",
    r"none of (?:our|its|their) business": "not supported; the caller decides",
    r"shall": "must, will",
    r"be it": "whether",
    r"in the place of|in the stead of": "instead of",
    r"is told|are told|was told": "receives, is notified",
    r"of its own accord": "by itself",
    r"that which": "what",
    r"has come(?! from)|have come(?! from)": "has arrived, has reached",
    r"goes on(?:ce)? (?:with|where|behind|there|from|at)|go on (?:with|where|behind|from|at)": "continues",
    r"need be": "if needed",
    r"hitherto|thereof|therein|wherein|whereof|henceforth|thence|hence": "plain words",
    r"nobody knows|nobody can know": "it is unknown",
    r"the words of": "the arguments, the text",
    r"by one's|of one's|one's own": "your own, its own",
    r"at its place|in its place": "there",
    r"stands? in (?:the|a|its|for)": "is in, represents",
    r"make good|made good": "repair",
    r"brings? .{0,40} into shape": "formats",
    r"the like of|their like|its like": "and similar",
}

_CODE = re.compile(r"^ *```.*?^ *```$|^ {4}\S.*$|`[^`\n]+`|<!--.*?-->", re.M | re.S)


def files() -> list[Path]:
    """Every file of CHECKED."""
    found: list[Path] = []
    for name in CHECKED:
        path = ROOT / name
        found += [path] if path.is_file() else [*path.rglob("*.md"), *path.rglob("*.py")]
    left_out = {*(ROOT / name for name in GENERATED), Path(__file__).resolve()}
    return sorted(path for path in found if path not in left_out)


def prose(path: Path) -> str:
    """The text of a file without its code, with the line breaks where they were."""
    text = path.read_text()
    if path.suffix == ".md":
        return _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_banned_phrase(path: Path) -> None:
    text = prose(path)
    found = []
    for phrase, better in BANNED.items():
        spaced = phrase.replace(" ", r"\s+")
        for match in re.finditer(rf"\b(?:{spaced})\b", text, re.I):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {match[0]!r}; better: {better}")
    assert not found, "\n".join(found)
