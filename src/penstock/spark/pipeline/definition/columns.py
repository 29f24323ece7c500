"""Reads the section [schema]: the type of each column, and the default of some.

qty = "int"
store = {type = "string", default = "online"}
"""

from __future__ import annotations

from penstock.spark.pipeline.definition.toml_table import Problems, Table

_FORM = 'a Spark type: "int", "decimal(10,2)", or {type = "int", default = 0}'


def read_schema(top: Table, problems: Problems) -> tuple[dict[str, str], dict[str, str]]:
    """The types and the defaults, by column."""
    section = top.table("schema")
    types: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for name, value in section.values.items():
        if isinstance(value, dict):
            column = section.table(name, ("type", "default"))
            types[name] = column.text("type")
            if "type" not in value:
                problems.add(column.path, f"{name} needs a type: {name} = {{type = ...}}")
            default = _default_or_none(column, problems)
            if default is not None:
                defaults[name] = default
        elif isinstance(value, str) and value.strip():
            types[name] = value.strip()
        else:
            problems.add(("schema", name), f"{name} must be {_FORM}")
    if not types and "schema" in top.values:
        problems.add(("schema",), "[schema] has no column")
    return {name: kind for name, kind in types.items() if kind}, defaults


def _default_or_none(column: Table, problems: Problems) -> str | None:
    """The default as the text of a field."""
    value = column.values.get("default")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if value is not None:
        problems.add((*column.path, "default"), "default must be a string, a number, true or false")
    return None
