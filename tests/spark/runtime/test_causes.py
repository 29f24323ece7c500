"""Extracting the cause from an error of Spark."""

from __future__ import annotations

import pytest

from penstock.spark.runtime.causes import CAUSE_CHARACTERS_MAX, cause_of

OURS = """[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when running Python streaming data source:
Traceback (most recent call last):
  File "a.py", line 1, in read
    raise DataLoss("3 entries")
penstock.spark.source.planning.DataLoss: 3 entries of orders are lost
SQLSTATE: 38000

=== Streaming Query ===
Identifier: orders/silver [id = 1]
\tat org.apache.spark.Something(Some.scala:1)
"""

THEIRS = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "x.py", line 2, in call
    raise e
                   ^^^^^^^
ValueError: my cause
second line

=== Streaming Query ===
"""

SQL = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `zz` cannot be resolved. Did you mean
 one of the following? [`a`, `b`]. SQLSTATE: 42703; line 1 pos 0;
'Project [unresolvedalias(('zz > 1))]
"""

MEANT = "Did you mean one of the following? [`a`, `b`]"

PARSE = """
[PARSE_SYNTAX_ERROR] Syntax error at or near ';'. SQLSTATE: 42601 (line 1, pos 5)

== SQL ==
a > 1; drop
"""

JAVA = """Job aborted due to stage failure
\tat org.apache.spark.A(B.scala:1)
Caused by: java.lang.RuntimeException: outer
\tat x.Y(Z.java:1)
Caused by: java.io.IOException: No space left on device
\tat x.Y(Z.java:1)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (OURS, "3 entries of orders are lost"),
        (THEIRS, "ValueError: my cause second line"),
        (SQL, f"A column with name `zz` cannot be resolved. {MEANT}"),
        (PARSE, "Syntax error at or near ';'"),
        (JAVA, "No space left on device"),
        ("plain", "plain"),
        ("x" * 10_000, "x" * CAUSE_CHARACTERS_MAX + "..."),
    ],
)
def test_the_cause_is_one_line(text: str, cause: str) -> None:
    assert cause_of(text) == cause
