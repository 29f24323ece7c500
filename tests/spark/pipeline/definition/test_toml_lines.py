"""Finding the line of each key in a TOML text."""

from __future__ import annotations

from penstock.spark.pipeline.definition.toml_lines import KeyLines

TEXT = '''# a comment
top = 1
[source] # with a remark
url = "x"
long = """
url = "inside of a text"
"""
many = [
  "a = b",
  [1],
]
[source.options]
"quoted key" = 1
a.b = 2
[[aggregate]]
name = "one"
inline = { x = 1, y = { z = 2 } }
[[aggregate]]
name = "two"
[aggregate.measures]
sum = "s"
'''


def test_every_key_is_found_on_its_line() -> None:
    lines = KeyLines(TEXT)
    assert lines.of(("top",)) == 2
    assert lines.of(("source",)) == 3
    assert lines.of(("source", "url")) == 4
    assert lines.of(("source", "long")) == 5
    assert lines.of(("source", "many")) == 8
    assert lines.of(("source", "options", "quoted key")) == 13
    assert lines.of(("source", "options", "a", "b")) == 14
    assert lines.of(("aggregate", 0)) == 15
    assert lines.of(("aggregate", 0, "inline", "y", "z")) == 17
    assert lines.of(("aggregate", 1, "name")) == 19
    assert lines.of(("aggregate", 1, "measures", "sum")) == 21


def test_a_missing_key_has_the_line_of_its_table() -> None:
    lines = KeyLines(TEXT)
    assert lines.of(("source", "missing")) == 3
    assert lines.of(("aggregate", 1, "window")) == 18
    assert lines.of(("nothing", "here")) == 1
