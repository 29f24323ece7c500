"""Options of the sink, and the errors for wrong ones."""

from __future__ import annotations

import pytest

from penstock.spark.option_reader import OptionError
from penstock.spark.sink.options import SinkOptions, parse_sink_options

URL = "redis://127.0.0.1:7000"


def options(columns: str = "v", **given: str) -> SinkOptions:
    return parse_sink_options({"url": URL, **given}, columns.split(), False)


def streaming_options(**given: str) -> SinkOptions:
    return parse_sink_options({"url": URL, "stream": "out", **given}, ["v"], True)


@pytest.mark.parametrize(
    ("given", "trim"),
    [
        ({}, ()),
        ({"maxlen": "5"}, ("MAXLEN", "~", "5", "LIMIT", "0")),
        ({"MaxLen": "0", "approximate": "false"}, ("MAXLEN", "=", "0")),
        ({"minid": "17-3", "approximate": "TRUE"}, ("MINID", "~", "17-3", "LIMIT", "0")),
    ],
)
def test_trimming_is_by_length_or_by_id(given: dict[str, str], trim: tuple[str, ...]) -> None:
    assert options(stream="out", **given).trim == trim


def test_the_name_of_a_stream_may_contain_a_comma() -> None:
    assert options(stream="a,b").stream == "a,b"


@pytest.mark.parametrize("column", ["stream", "_stream"])
def test_a_column_may_name_the_stream(column: str) -> None:
    assert options(columns=f"v {column}").stream == ""


def test_options_that_spark_adds_are_ignored() -> None:
    assert streaming_options(checkpointLocation="/x").write_id == ""


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "option stream is missing; expected the name of a stream, or a column `stream`"),
        ({"stream": " "}, "option stream: ''"),
        ({"stream": "s", "maxlen": "-1"}, "option maxlen: '-1' is not allowed"),
        ({"stream": "s", "minid": "x"}, "option minid: 'x' is not allowed; expected an id"),
        ({"stream": "s", "minid": "1", "maxlen": "1"}, "either maxlen or minid"),
        ({"stream": "s", "approximate": "true"}, "expected maxlen or minid with it"),
        ({"stream": "s", "maxlen": "1", "approximate": "maybe"}, "expected true or false"),
        ({"stream": "s", "writeId": ""}, "option writeId"),
        ({"stream": "s", "streamPattern": "s*"}, "option streamPattern: there is no such option"),
        ({"stream": "s", "checkpointLocation": "/x"}, "option checkpointLocation: there is no"),
        ({"stream": "s", "url": "redis://a,redis://b"}, "expected one server to write to"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        options(**given)
    assert text in str(caught.value)


def test_a_write_id_is_for_a_batch() -> None:
    with pytest.raises(OptionError, match="a streaming query has its checkpoint instead"):
        streaming_options(writeId="x")
