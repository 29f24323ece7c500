"""tools/provide_servers.py reads apt's configuration, and never fails a run. The downloads are not tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.servers.programs import PROGRAMS, REDIS_8_6, what_was_missed
from tools import provide_servers
from tools.provide_servers import (
    Archive,
    CannotProvide,
    Launcher,
    classic_sources,
    deb822_sources,
    main_archives,
    with_libraries,
)

SERVER = """#!/bin/sh
echo "Redis server v=8.6.2 sha=0 malloc=libc bits=64 build=0"
"""


def test_a_source_of_one_line_is_read() -> None:
    text = """
# deb http://old.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # ours
deb [arch=amd64 signed-by=/keys/a.gpg,/keys/b.gpg] http://signed.example/debian sid main
"""
    assert list(classic_sources(text)) == [
        (Archive("http://mirror.example/debian", ""), ["bookworm"], ["main", "contrib"]),
        (Archive("http://signed.example/debian", "/keys/a.gpg /keys/b.gpg"), ["sid"], ["main"]),
    ]


def test_a_source_of_one_paragraph_is_read() -> None:
    text = """Types: deb deb-src
# http://comment.example/
URIs: http://one.example/debian http://two.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc=

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: trixie
Components: main
"""
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc="
    assert list(deb822_sources(text)) == [
        (Archive(f"http://{name}.example/debian", key), ["trixie", "trixie-updates"], ["main"])
        for name in ("one", "two")
    ]
    assert f"Signed-By: {key}\n" in Archive("http://one.example/debian", key).stanza("sid")


def test_only_mirrors_of_the_archive_itself_are_used(tmp_path: Path) -> None:
    lines = tmp_path / "a.list"
    lines.write_text(
        "deb http://one.example/debian trixie main\n"
        "deb http://two.example/security trixie-security main\n"
        "deb http://three.example/other nodistro main\n"
        "deb http://four.example/debian trixie contrib\n"
    )
    paragraphs = tmp_path / "b.sources"
    paragraphs.write_text(
        "Types: deb\nURIs: http://five.example/debian\nSuites: sid\nComponents: main\n"
    )
    found = main_archives([lines, paragraphs], "trixie")
    assert [archive.uri for archive in found] == [
        "http://one.example/debian",
        "http://five.example/debian",
    ]


def test_libraries_of_libraries_are_wanted_and_nothing_else() -> None:
    tree = """redis-server
  Depends: redis-tools
redis-tools
  Depends: adduser
  Depends: libc6
  PreDepends: libssl3t64
adduser
  Depends: libadd
libc6
  Depends: libgcc-s1
libgcc-s1
  Depends: libc6
libssl3t64
  Depends: zlib1g
    zlib2g
zlib1g
"""
    libraries = ["libc6", "libssl3t64", "libgcc-s1", "zlib1g"]
    assert with_libraries(tree) == [*provide_servers.PACKAGES, *libraries]


def test_a_program_starts_after_its_folder_was_moved(tmp_path: Path) -> None:
    folder = tmp_path / "old place"
    folder.mkdir()
    (folder / "server").write_text(SERVER)
    (folder / "server").chmod(0o755)
    (folder / "start").write_text(Launcher("server", None).text())
    (folder / "start").chmod(0o755)
    folder = folder.rename(tmp_path / "new place")
    assert provide_servers.version_of(folder / "start") == ("redis", "8.6.2")


def test_what_cannot_be_provided_is_reported_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def good(work: Path) -> list[Launcher]:
        (work / "good").mkdir()
        (work / "good" / "server").write_text(SERVER)
        (work / "good" / "server").chmod(0o755)
        return [Launcher("good/server", None)]

    def bad(_work: Path) -> list[Launcher]:
        raise CannotProvide("there is no network")

    def broken(work: Path) -> list[Launcher]:
        (work / "broken").mkdir()
        return [Launcher("broken/server", None)]

    sources = {"bad": bad, "broken": broken, "good": good}
    monkeypatch.setattr(provide_servers, "SOURCES", sources)
    provide_servers.provide(tmp_path)
    said = capsys.readouterr().err
    assert "nothing from bad: there is no network" in said
    assert "nothing from broken: new-program: " in said
    assert "redis-8.6 (8.6.2)" in said
    assert {path.name for path in tmp_path.iterdir()} == {
        *(".lock", "good", "redis-8.6", "versions.json")
    }
    assert json.loads((tmp_path / "versions.json").read_text()) == {"good": {"redis-8.6": "8.6.2"}}

    del sources["bad"], sources["broken"]
    provide_servers.provide(tmp_path)
    assert capsys.readouterr().err == "", "it is there already"

    (tmp_path / "good" / "server").unlink()
    provide_servers.provide(tmp_path)
    assert "redis-8.6 (8.6.2)" in capsys.readouterr().err, "a broken program is replaced"


def test_the_folder_that_tests_look_into_is_that_of_the_makefile() -> None:
    root = Path(provide_servers.__file__).parents[1]
    line = "python tools/provide_servers.py $(VENV)/servers"
    assert line in (root / "Makefile").read_text()
    assert REDIS_8_6.file_name == "redis-8.6"


def test_a_run_names_the_servers_that_were_missing() -> None:
    reasons = [f"('tests/a.py', 3, 'Skipped: {REDIS_8_6.missing}')"] * 2
    assert what_was_missed([*reasons, "Skipped: no chromium on PATH"]) == [
        "not compared with Redis 8.6: 2 tests skipped (no redis-8.6: make servers downloads it)"
    ]
    assert len({program.missing for program in PROGRAMS}) == len(PROGRAMS)
