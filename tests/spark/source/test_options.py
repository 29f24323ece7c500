"""Options of the source, and the errors for wrong ones."""

from __future__ import annotations

import pickle

import pytest

from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.spark.option_reader import OptionError
from penstock.spark.source.options import SourceOptions, parse_options

URL = "redis://127.0.0.1:7000/2"


def options(**given: str) -> SourceOptions:
    return parse_options({"url": URL, "stream": "orders", **given})


def refusal(**given: str) -> str:
    with pytest.raises(OptionError) as caught:
        options(**given)
    return str(caught.value)


def test_missing_options_have_defaults() -> None:
    made = options()
    assert made.streams == ("orders",)
    assert made.place.servers[0].label == "127.0.0.1:7000/2"
    assert (made.starting, made.ending, made.entries_max, made.partitions_min) == (None,) * 4
    assert made.fail_on_data_loss
    assert not made.shared
    assert (made.fields_type, made.fail_on_parse_error) == ("string", False)


def test_names_are_case_insensitive() -> None:
    made = parse_options(
        {"URL": URL, "STREAM": "a", "minpartitions": "3", "FailOnDataLoss": "FALSE"}
    )
    assert (made.partitions_min, made.fail_on_data_loss) == (3, False)


def test_several_streams_are_separated_by_commas_or_a_json_array() -> None:
    assert options(stream="a, b,a").streams == ("a", "b")
    assert options(stream='["a,b", "c"]').streams == ("a,b", "c")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"minPartitions": "0"}, "a whole number from 1 to 65536"),
        ({"minPartitions": "many"}, "'many'"),
        ({"maxEntriesPerTrigger": "-1"}, "'-1'"),
        ({"fetchSize": "0"}, "a whole number from 1"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"mode": "both"}, "exclusive or shared"),
        ({"fieldsType": "json"}, "string or binary or entries"),
        ({"onParseError": "drop"}, "null or fail"),
        ({"startingOffsets": "first"}, "earliest, latest, or a JSON object"),
        ({"startingOffsets": '{"orders": "x"}'}, "earliest, latest, or a JSON object"),
        ({"startingOffsets": '{"orders"'}, "earliest, latest, or a JSON object"),
        ({"startingTimestamp": "yesterday"}, "a whole number"),
        ({"stream": "a,,b"}, "names separated by commas"),
        ({"stream": "[1]"}, "names separated by commas"),
        ({"streamPattern": "o*"}, "either stream or streamPattern"),
        ({"consumer": "c"}, "without mode=shared"),
        ({"claimIdleMs": "1"}, "without mode=shared"),
        ({"cluster": "1"}, "true or false"),
    ],
)
def test_an_error_names_the_option_and_the_allowed_values(given: dict[str, str], word: str) -> None:
    text = refusal(**given)
    (name,) = given
    assert word in text
    assert name in text or name == "streamPattern"


def test_an_unknown_option_is_refused_with_the_nearest_known_one() -> None:
    assert "did you mean minPartitions?" in refusal(minPartition="3")


def test_offsets_and_timestamps_together_are_refused() -> None:
    assert "either" in refusal(startingOffsets="earliest", startingTimestamp="1")


def test_mode_shared_needs_a_group() -> None:
    assert "option group" in refusal(mode="shared")
    made = options(mode="shared", group="g", claimIdleMs="5", consumer="c")
    assert (made.shared, made.group, made.claim_idle_ms, made.consumer) == (True, "g", 5, "c")
    assert made.entries_max == 10_000


def test_offsets_are_words_ids_or_times() -> None:
    word = options(startingOffsets="Earliest").starting
    assert word is not None
    assert word.word == "earliest"
    text = '{"a": "5", "b": "earliest", "c": "latest"}'
    ids = options(stream="a,b,c", startingOffsets=text).starting
    assert ids is not None
    assert ids.ids == {"a": StreamID(5, 0), "b": SMALLEST, "c": LARGEST}
    ending = options(stream="a", endingOffsets='{"a": "5"}').ending
    assert ending is not None
    assert ending.ids == {"a": StreamID(5, 2**64 - 1)}
    moment = options(endingTimestamp="17").ending
    assert moment is not None
    assert moment.moment_ms == 17


def test_offsets_of_other_streams_are_refused() -> None:
    for name in ("oders", "my:orders", "10.0.0.7:6379/0 orders"):
        with pytest.raises(OptionError, match="a stream of this read: orders"):
            options(startingOffsets=f'{{"{name}": "5"}}')
    urls = "redis://10.0.0.7,redis://10.0.0.8"
    of_one = options(url=urls, startingOffsets='{"10.0.0.7:6379/0 orders": "5"}').starting
    assert of_one is not None
    assert of_one.ids == {"10.0.0.7:6379/0 orders": StreamID(5, 0)}
    with pytest.raises(
        OptionError, match=r"orders, 10\.0\.0\.7:6379/0 orders, 10\.0\.0\.8:6379/0 orders"
    ):
        options(url=urls, startingOffsets='{"10.0.0.9:6379/0 orders": "5"}')


@pytest.mark.parametrize(
    "url",
    [
        "http://host",
        "redis://:secret/word@host",
        "redis://host:secret",
        "redis://u:secret@host/x",
        "redis://u:secret@host?no_such_thing=1",
        "",
    ],
)
def test_a_bad_url_is_refused_without_showing_it(url: str) -> None:
    text = refusal(url=url)
    assert "option url" in text
    assert "secret" not in text


def test_options_as_text_show_no_password() -> None:
    made = options(url="rediss://u:secret@host:1/0", password="other")
    assert "secret" not in repr(made)
    assert "other" not in repr(made)
    assert made.place.servers[0].settings["password"] == "secret"
    assert pickle.loads(pickle.dumps(made)) == made


def test_the_password_option_applies_to_urls_without_one() -> None:
    made = options(url="redis://a:1,redis://b:1", username="u", password="p")
    assert [server.settings["password"] for server in made.place.servers] == ["p", "p"]
    assert [server.settings["username"] for server in made.place.servers] == ["u", "u"]


def test_all_kinds_of_urls_are_read() -> None:
    made = options(url="unix:///run/x.sock?db=3, rediss://h").place.servers
    assert [server.label for server in made] == ["/run/x.sock/3", "h:6379/0"]
    assert [(server.is_unix, server.is_tls) for server in made] == [(True, False), (False, True)]


def test_a_cluster_has_no_databases_and_no_unix_sockets() -> None:
    assert options(url="redis://a,redis://b", cluster="true").place.cluster
    assert "database 0" in refusal(url="redis://a/1", cluster="true")
    assert "each server once" in refusal(url="redis://a,redis://a:6379/0")


def test_an_error_survives_pickling() -> None:
    with pytest.raises(OptionError) as caught:
        options(minPartitions="x")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
