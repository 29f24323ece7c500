"""`penstock inspect` on files: every kind of file, the output, and exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.inspect.stored import stream_of
from penstock.persist.rdb.dump import dump_value
from penstock.persist.rdb.reader import RdbItem
from tests.support.command_line import PROGRAM
from tests.support.disk.data_files import log_file, write_ours
from tests.support.engine.streams import add
from tests.support.engine.streams import stream_of as stream_with
from tests.support.rdb.whole_files import write_items


def run(*words: str | Path, **environment: str) -> Result:
    return CliRunner().invoke(
        app,
        ["inspect", *map(str, words)],
        catch_exceptions=False,
        prog_name="penstock",
        env=environment,
    )


def looked_at(*words: str | Path) -> dict[str, Any]:
    result = run(*words, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    about: dict[str, Any] = json.loads(result.stdout)
    return about


def refused(*words: str | Path) -> str:
    """The error line of a command that ends with exit code 2."""
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("penstock: ").rstrip("\n")


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    return write_ours(tmp_path / "data")


@pytest.fixture
def listpack_file(tmp_path: Path) -> Path:
    (node,) = stream_of(stream_with("5-9", "6-2"))
    path = tmp_path / "node.bin"
    path.write_bytes(node.data)
    return path


def test_without_a_key_the_streams_of_a_file_are_listed(ours: Path) -> None:
    for path in (ours, ours / "dump.rdb", ours / "appendonlydir"):
        result = run(path)
        assert (result.exit_code, result.stderr) == (0, "")
        heading, row = result.stdout.splitlines()
        assert heading.split() == ["db", "stream", "entries", "nodes", "bytes", "last", "id"]
        assert row.split()[:4] == ["0", "s", "4", "1"]
    (stream,) = looked_at(ours)["streams"]
    assert (stream["stream"], stream["last_id"]) == ("s", "4-1")


def test_log_and_snapshot_show_the_same_bytes(ours: Path) -> None:
    shown = [
        run(path, "--key", "s", "--what", "bytes").stdout.partition("\n")[2]
        for path in (ours, ours / "dump.rdb", ours / "appendonlydir")
    ]
    assert shown[0] == shown[1] == shown[2]
    assert "ff                       end" in shown[0]
    # An increment alone has less in it.
    part = run(log_file(ours, "incr"), "--key", "s", "--what", "bytes")
    assert part.exit_code == 0
    assert len(part.stdout.splitlines()) < len(shown[0].splitlines())


def test_a_payload_of_dump_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "payload.bin"
    path.write_bytes(dump_value(stream_with("1-0", "2-0", "3-0", "4-0"), 10))
    about = looked_at(path, "--what", "all")
    assert [node["id"] for node in about["nodes"]] == ["1-0", "4-0"]
    assert looked_at(path, "--node", "2")["nodes"][0]["id"] == "4-0"


def test_a_raw_listpack_is_shown_as_a_list_or_as_a_node(listpack_file: Path) -> None:
    plain = run(listpack_file)
    assert plain.exit_code == 0
    lines = plain.stdout.splitlines()
    assert lines[0] == f"{listpack_file}: a listpack of 41 bytes"
    assert (
        lines[3]
        == "     6  02|01                    element           2               integer of 7 bits"
    )
    as_node = run(listpack_file, "--node", "5-9")
    assert as_node.exit_code == 0
    assert "entry 2  6-2" in as_node.stdout
    assert "-7" in as_node.stdout
    segments = looked_at(listpack_file)["segments"]
    assert "".join(segment["hex"] for segment in segments) == listpack_file.read_bytes().hex()


def test_json_has_every_byte_and_exact_ids(tmp_path: Path) -> None:
    stream = stream_with()
    add(stream, "1-0", b"\xff", b"\x1b[31m", b"n", b"9007199254740993")
    add(stream, f"{2**64 - 1}-{2**64 - 1}", b"<script>", b"")
    path = tmp_path / "payload.bin"
    path.write_bytes(dump_value(stream, 10))
    result = run(path, "--what", "bytes", "--json")
    assert result.stdout.isascii()
    assert "\x1b" not in result.stdout
    (node,) = json.loads(result.stdout)["nodes"]
    (raw,) = stream_of(stream)
    assert "".join(segment["hex"] for segment in node["segments"]) == raw.data.hex()
    assert [entry["id"] for entry in node["items"]] == ["1-0", f"{2**64 - 1}-{2**64 - 1}"]
    assert node["items"][0]["fields"] == [["\\xff", "\x1b[31m"], ["n", "9007199254740993"]]
    values = [s["value"] for s in node["segments"] if s["role"] == "value"]
    assert "9007199254740993" in values  # as text: a number would be rounded by some readers


def test_damage_is_shown_and_is_exit_code_1(listpack_file: Path) -> None:
    data = bytearray(listpack_file.read_bytes())
    data[31] = 0x44  # a backlen: the rest cannot be decoded
    listpack_file.write_bytes(data)
    for words in ((), ("--node", "5-9")):
        result = run(listpack_file, *words)
        assert (result.exit_code, result.stderr) == (1, "")
        assert "DAMAGE: " in result.stdout
    about = json.loads(run(listpack_file, "--node", "5-9", "--json").stdout)
    assert about["damaged"] is True
    assert about["nodes"][0]["damage"][0]["offset"] == 31


def test_a_damaged_node_of_a_snapshot_is_found_in_the_table(tmp_path: Path) -> None:
    stream = stream_with("1-0", "2-0", "3-0", "4-0")
    whole = bytearray(write_items([RdbItem(0, b"s", None, stream)], 10, compress=False))
    node = stream_of(stream)[1]
    whole[whole.index(node.data) + len(node.data) - 3] = 0x44
    path = tmp_path / "dump.rdb"
    path.write_bytes(whole)
    result = run(path, "--key", "s", "--what", "nodes")
    assert result.exit_code == 1
    assert "note: the file is damaged: " in result.stdout
    assert [line.split()[-1] for line in result.stdout.splitlines()[-2:]] == ["sound", "26"]


def test_a_stream_in_several_databases_is_selected_with_db(tmp_path: Path) -> None:
    path = tmp_path / "dump.rdb"
    items = [RdbItem(db, b"s", None, stream_with(f"{db + 1}-0")) for db in (0, 3)]
    path.write_bytes(write_items(items, 10))
    assert "select one with --db" in refused(path, "--key", "s")
    assert looked_at(path, "--key", "s", "--db", "3")["nodes"][0]["id"] == "4-0"
    assert "no stream s in database 1" in refused(path, "--key", "s", "--db", "1")


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, ours: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x1b[31mnothing known")
    os.mkfifo(tmp_path / "pipe")
    assert "give its kind with --kind" in refused(tmp_path / "odd")
    assert "not a file" in refused(tmp_path / "pipe")
    assert "no such file" in refused(tmp_path / "gone", "--kind", "rdb")
    assert "has no stream none" in refused(ours, "--key", "none")
    assert "is not a number (3, -1)" in refused(ours, "--key", "s", "--node", "x")
    assert "counted from 1" in refused(ours, "--key", "s", "--node", "0")
    assert "there is no node 9" in refused(ours, "--key", "s", "--node", "9")
    assert "no node holds" in refused(ours, "--key", "s", "--node", "99-0")
    assert "--trim" in refused(ours, "--key", "s", "--node", "1", "--trim", "1")
    assert "--key and --db are for files" in refused("some-key", "--key", "s")
    assert "--what" in refused(ours, "--what", "everything")
    assert "name it with --key" in refused(ours, "--what", "bytes")
    (tmp_path / "payload.bin").write_bytes(dump_value(stream_with("1-0"), 10))
    assert "select from a snapshot or log" in refused(tmp_path / "payload.bin", "--key", "s")


def test_a_wrong_kind_is_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(b"\x1b[31mnothing known")
    for kind in ("rdb", "aof", "dump", "listpack"):
        result = run(path, "--kind", kind)
        assert result.exit_code == 1, kind
        assert "\x1b" not in result.stdout + result.stderr


def test_a_url_on_the_command_line_means_a_key(ours: Path) -> None:
    nobody = "redis://127.0.0.1:1/0"
    assert run(ours, "--url", nobody).exit_code == 3
    assert run(ours, PENSTOCK_URL=nobody).exit_code == 0
    assert run("no-such-file", PENSTOCK_URL=nobody).exit_code == 3
    assert run("k" * 5000, PENSTOCK_URL=nobody).exit_code == 3


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "penstock inspect orders --node -1" in result.stdout
    assert "Exit codes:" in result.stdout


def test_a_terminal_gets_colours_and_a_pipe_none(listpack_file: Path) -> None:
    words = [*PROGRAM, "inspect", str(listpack_file), "--node", "5-9"]
    piped = subprocess.run(words, capture_output=True, check=True, timeout=60).stdout
    assert b"\x1b" not in piped
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    settings = {"TERM": "xterm-256color", "COLUMNS": "200"}
    with subprocess.Popen(words, stdout=theirs, env=environment | settings) as process:
        os.close(theirs)
        received = b""
        while chunk := _read(ours):
            received += chunk
    os.close(ours)
    assert process.returncode == 0
    # The name k: its encoding, its content, its backlen.
    assert b"\x1b[32m81" in received
    assert b"\x1b[1;32m6b" in received
    assert b"\x1b[2;32m02" in received


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux raises it when the other end is closed
        return b""
