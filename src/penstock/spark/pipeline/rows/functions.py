"""SQL functions of pipelines. They give null where Spark's own would stop the query, whatever the ANSI mode.

`timestamp_millis` and `timestamp_seconds` fail if the number is too large for a timestamp. One such entry
would stop a pipeline for good. In the session of a pipeline these names mean functions that give null outside
the years 1 to 9999.

`id_timestamp` is the time in the id of an entry. With it a replayed entry, which has the id of the original
in a field, can be counted at the original time.

Spark prefers a function of its own to one of the session with the same name, so its own is removed from the
session first. Other sessions are not affected.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_SECONDS = "-62135596800 and 253402300799"
_MILLIS = "-62135596800000 and 253402300799999"
_ID = "^[0-9]{1,15}(-[0-9]{1,20})?$"
_ID_MILLIS = "try_cast(split_part(id, '-', 1) as bigint)"
_BODIES = {
    "timestamp_millis": f"(n bigint) returns timestamp return case when n between {_MILLIS}"
    " then timestamp_micros(n * 1000) end",
    "timestamp_seconds": f"(n decimal(38, 6)) returns timestamp return case when n between {_SECONDS}"
    " then timestamp_micros(cast(n * 1000000 as bigint)) end",
    "id_timestamp": "(id string) returns timestamp return case"
    f" when id rlike '{_ID}' and {_ID_MILLIS} between {_MILLIS}"
    f" then timestamp_micros({_ID_MILLIS} * 1000) end",
}


def define_functions(session: SparkSession) -> None:
    """Define the functions in a session."""
    java: Any = session._jvm
    registry = session._jsparkSession.sessionState().functionRegistry()
    some = java.scala.Option.apply
    for name, body in _BODIES.items():
        own = java.org.apache.spark.sql.catalyst.FunctionIdentifier(
            name, some("builtin"), some("system")
        )
        registry.dropFunction(own)
        session.sql(f"create temporary function {name}{body}")
