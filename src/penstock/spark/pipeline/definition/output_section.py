"""The sections [[output]]: further targets for the rows of silver or the windows of an aggregate.

    [[output]]
    name = "warehouse"
    from = "silver"                         # the default, or the name of an aggregate
    jdbc = "jdbc:postgresql://db/shop"      # with table, or:
    table = "orders"
    call = "alerts:send"                    # a Python function beside the file

    [output.options]                        # of jdbc: user, password, driver, jars, and others of Spark
    password = "${SECRET}"

An output has a name, because progress reports, `status` and `reset` need one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problems, Table

DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "sqlite": "org.sqlite.JDBC",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "oracle": "oracle.jdbc.OracleDriver",
    "duckdb": "org.duckdb.DuckDBDriver",
    "h2": "org.h2.Driver",
}
KEYS = ("name", "from", "call", "jdbc", "table", "options")

_SOURCE_DEFAULT = "silver"
_CALL = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TABLE_PART = r"""(?:[A-Za-z_][\w$]*|"[^"]+")"""
_TABLE = re.compile(rf"{_TABLE_PART}(?:\.{_TABLE_PART}){{0,2}}")
_URL = re.compile(r"jdbc:([a-z0-9]+):.+", re.S)
_OWN_OPTIONS = {"url": "jdbc", "dbtable": "table", "query": "table"}


@dataclass(frozen=True, slots=True)
class OutputSection:
    """One section [[output]]: either a function to call, or a table of a database."""

    name: str
    source: str = _SOURCE_DEFAULT
    call: str = ""
    jdbc: str = field(default="", repr=False)  # it may contain a password
    table: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    jars: tuple[str, ...] = ()

    @property
    def is_of_silver(self) -> bool:
        """Whether it gets the rows of silver. Otherwise `source` is an aggregate."""
        return self.source == _SOURCE_DEFAULT

    @property
    def database(self) -> str:
        """The kind of database in the URL, such as postgresql. Empty if the URL has none."""
        found = _URL.fullmatch(self.jdbc)
        return found[1] if found else ""

    @property
    def driver(self) -> str:
        """The class of the JDBC driver. Empty if it is unknown."""
        return self.options.get("driver") or DRIVERS.get(self.database, "")


class SectionReader:
    """Reads the sections. `variables` replaces ${NAME}; `place` also makes a path relative to the file."""

    def __init__(
        self,
        problems: Problems,
        variables: Callable[[KeyPath, str], str],
        place: Callable[[KeyPath, str], str],
    ) -> None:
        self._problems = problems
        self._variables = variables
        self._place = place

    def read(self, table: Table) -> OutputSection:
        """One section."""
        table.only(*KEYS)
        options = {
            name: self._variables((*table.path, "options", name), value)
            for name, value in table.table("options").words().items()
        }
        jars = [one.strip() for one in options.pop("jars", "").split(",") if one.strip()]
        section = OutputSection(
            name=table.text("name", needed=True),
            source=table.text("from") or _SOURCE_DEFAULT,
            call=table.text("call"),
            jdbc=self._variables((*table.path, "jdbc"), table.text("jdbc")),
            table=table.text("table"),
            options=options,
            jars=tuple(self._place((*table.path, "options", "jars"), one) for one in jars),
        )
        for key, text in _key_problems(section, "options" in table.values):
            self._problems.add((*table.path, *key), text)
        return section


def _key_problems(section: OutputSection, has_options: bool) -> Iterator[tuple[KeyPath, str]]:
    if bool(section.call) == bool(section.jdbc):
        yield (), "an output needs either call or jdbc"
    elif section.call:
        yield from _call_problems(section, has_options)
    else:
        yield from _jdbc_problems(section)


def _call_problems(section: OutputSection, has_options: bool) -> Iterator[tuple[KeyPath, str]]:
    if not _CALL.fullmatch(section.call):
        yield ("call",), 'call must be "module:function"'
    if section.table:
        yield ("table",), "table is for jdbc: remove it"
    if has_options:
        yield ("options",), "[output.options] is for jdbc: remove it"


def _jdbc_problems(section: OutputSection) -> Iterator[tuple[KeyPath, str]]:
    # No text quotes the URL: it may contain a password.
    if not section.database:
        yield ("jdbc",), 'jdbc must be a URL like "jdbc:postgresql://host:5432/database"'
    elif not section.driver:
        kind = section.database
        yield ("jdbc",), f"jdbc:{kind} is not known: set driver, a Java class, in [output.options]"
    if not section.table:
        yield ("jdbc",), "jdbc needs a table"
    elif not _TABLE.fullmatch(section.table):
        yield ("table",), 'table must be a name: "orders", "sales.orders" or \'"Sales"."Orders"\''
    for name in section.options:
        own = _OWN_OPTIONS.get(name.lower())
        if own:
            yield ("options", name), f"set {name} in [[output]], as {own}"
        is_count = section.options[name].isdecimal() and int(section.options[name]) > 0
        if name.lower() == "numpartitions" and not is_count:
            yield ("options", name), f"{name} must be a whole number, at least 1"


def section_problems(
    sections: tuple[OutputSection, ...], taken: list[str], aggregates: list[str]
) -> Iterator[tuple[KeyPath, str]]:
    """Sections with a name that is taken (in lower case), an unknown source, or the table of another one."""
    names = list(taken)
    tables: dict[tuple[str, str], str] = {}
    for at, one in enumerate(sections):
        if one.name and not re.fullmatch(r"[A-Za-z0-9-][A-Za-z0-9_-]*", one.name):
            text = "the name of an output may have letters, digits, - and, after the first, _"
            yield ("output", at, "name"), text
        elif one.name.lower() in names:
            yield ("output", at, "name"), f"there is already an output {one.name}"
        names.append(one.name.lower())
        if not one.is_of_silver and one.source not in aggregates:
            known = ", ".join([_SOURCE_DEFAULT, *aggregates])
            text = f"there is no {one.source}; an output can be from {known}"
            yield ("output", at, "from"), text
        if one.jdbc and one.table:
            other = tables.setdefault((one.jdbc, one.table), one.name)
            if other != one.name:
                yield ("output", at, "table"), f"{one.table} is already the table of {other}"
