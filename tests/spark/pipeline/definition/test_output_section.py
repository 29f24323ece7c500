"""The sections [[output]]: keys, their lines, and passwords that are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.pipeline.definition.file import read_pipeline
from penstock.spark.pipeline.definition.rules import rule_problems

HEAD = """[source]
url = "redis://127.0.0.1"
stream = "orders"
[schema]
qty = "int"
[archive]
path = "lake"
[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "1 minute"
measures = { orders = "count(*)" }
"""
FIRST = HEAD.count("\n") + 1  # the line of [[output]]


def problems(folder: Path, text: str) -> list[tuple[int, str]]:
    file = folder / "shop.toml"
    file.write_text(HEAD + text)
    pipeline, found = read_pipeline(file)
    assert pipeline is not None
    return [(one.line - FIRST, one.text) for one in [*found, *rule_problems(pipeline)]]


def test_a_section_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "sesame")
    file = tmp_path / "shop.toml"
    file.write_text(
        HEAD
        + '[[output]]\nname = "warehouse"\nfrom = "minute"\ntable = "sales.orders"\n'
        + 'jdbc = "jdbc:postgresql://db/shop?password=${SECRET}"\n'
        + '[output.options]\nuser = "me"\npassword = "${SECRET}"\njars = "a.jar, /b.jar"\nbatchsize = 10\n'
        + '[[output]]\nname = "send"\ncall = "alerts.mail:send"\n'
    )
    pipeline, found = read_pipeline(file)
    assert pipeline is not None
    assert [*found, *rule_problems(pipeline)] == []
    database, call = pipeline.sections
    assert database.jdbc == "jdbc:postgresql://db/shop?password=sesame"
    assert database.options == {"user": "me", "password": "sesame", "batchsize": "10"}
    assert database.jars == (str(tmp_path / "a.jar"), "/b.jar")
    assert (database.driver, database.is_of_silver) == ("org.postgresql.Driver", False)
    assert (call.call, call.is_of_silver) == ("alerts.mail:send", True)
    assert "sesame" not in repr(pipeline)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('name = "a"', 0, "an output needs either call or jdbc"),
        ('name = "a"\ncall = "a:b"\njdbc = "jdbc:h2:x"', 0, "an output needs either call or jdbc"),
        ('call = "a:b"', 0, "[[output]] needs name"),
        ('name = "a"\ncall = "send"', 2, 'call must be "module:function"'),
        ('name = "a"\ncall = "a:b"\ntable = "t"', 3, "table is for jdbc: remove it"),
        ('name = "a"\ncall = "a:b"\n[output.options]\nuser = "x"', 3, "is for jdbc: remove it"),
        ('name = "a"\njdbc = "postgres://x"\ntable = "t"', 2, "jdbc must be a URL like"),
        ('name = "a"\njdbc = "jdbc:what:x"\ntable = "t"', 2, "set driver, a Java class, in"),
        ('name = "a"\njdbc = "jdbc:h2:x"', 2, "jdbc needs a table"),
        ('name = "a"\njdbc = "jdbc:h2:x"\ntable = "a; drop"', 3, "table must be a name"),
        ('name = "a"\ntable = "t"\njdbc = "jdbc:h2:${NOT_SET}x"', 3, "NOT_SET is not set"),
        (
            'name = "a"\ntable = "t"\njdbc = "jdbc:h2:x"\n[output.options]\ndbtable = "x"',
            5,
            "set dbtable in [[output]], as table",
        ),
        (
            'name = "a"\ntable = "t"\njdbc = "jdbc:h2:x"\n[output.options]\nnumPartitions = 0',
            5,
            "numPartitions must be a whole number, at least 1",
        ),
        ('name = "a"\ncall = "a:b"\nform = "silver"', 3, "did you mean from?"),
        ('name = "a"\ncall = "a:b"\nfrom = "hour"', 3, "an output can be from silver, minute"),
        ('name = "minute"\ncall = "a:b"', 1, "there is already an output minute"),
        ('name = "Silver"\ncall = "a:b"', 1, "there is already an output Silver"),
        ('name = "a.b"\ncall = "a:b"', 1, "the name of an output may have letters"),
    ],
)
def test_a_wrong_section_is_a_problem_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    ((found_line, found),) = problems(tmp_path, f"[[output]]\n{text}\n")
    assert problem in found
    assert found_line == line


def test_two_outputs_cannot_share_a_table_or_a_name(tmp_path: Path) -> None:
    section = '[[output]]\nname = "{}"\njdbc = "jdbc:h2:x"\ntable = "t"\n'
    found = problems(tmp_path, section.format("a") + section.format("b"))
    assert found == [(7, "t is already the table of a")]
    found = problems(tmp_path, section.format("a") + section.format("a").replace('"t"', '"u"'))
    assert found == [(5, "there is already an output a")]
