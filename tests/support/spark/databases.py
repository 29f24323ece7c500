"""PostgreSQL and SQLite for tests of JDBC outputs. tools/provide-postgres.sh installs what they need."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.servers.redis_server import free_port

JARS = Path("/usr/share/java")
POSTGRES_JAR, SQLITE_JAR = JARS / "postgresql.jar", JARS / "sqlite-jdbc.jar"
# Debian's driver of SQLite has its native part in another package.
SQLITE_NATIVE = "/usr/lib/x86_64-linux-gnu/jni"
MISSING = "no PostgreSQL or no JDBC driver: see tools/provide-postgres.sh"
START_SECONDS_MAX = 60
USER = "postgres"


@dataclass
class Database:
    """A database: how a pipeline reaches it, and how a test asks it."""

    kind: str
    url: str
    jar: Path
    options: dict[str, str] = field(default_factory=dict)

    def section(self, table: str, name: str = "warehouse", source: str = "silver") -> str:
        """A section [[output]] for a table."""
        options = {"jars": str(self.jar), **self.options}
        lines = "\n".join(f'{key} = "{value}"' for key, value in options.items())
        return (
            f'\n[[output]]\nname = "{name}"\nfrom = "{source}"\njdbc = "{self.url}"\ntable = "{table}"\n'
            f"[output.options]\n{lines}\n"
        )

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement. Returns its rows, if it has any."""
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.url.removeprefix("jdbc:sqlite:"))) as file:
                found = file.execute(sql).fetchall()
                file.commit()
                return found
        with self.connection() as connection, connection.cursor() as cursor:
            cursor.execute(sql.encode())
            return [] if cursor.description is None else cursor.fetchall()

    def connection(self) -> psycopg.Connection[Any]:
        """A connection to PostgreSQL that commits each statement."""
        return psycopg.connect(
            self.url.removeprefix("jdbc:").partition("?")[0], user=USER, autocommit=True
        )

    def tables(self) -> set[str]:
        """The names of all tables."""
        catalogue = (
            "select name from sqlite_master where type = 'table'"
            if self.kind == "sqlite"
            else "select tablename from pg_tables where schemaname = 'public'"
        )
        return {str(name) for (name,) in self.ask(catalogue)}


class PostgresServer:
    """A server in a temporary folder. It does not run as root, so root starts it as another user."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._data = folder / "data"
        self._log = folder / "postgres.log"
        self._log.touch()
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": USER, "group": USER, "extra_groups": []}
            for one in (folder, self._log):
                shutil.chown(one, USER, USER)
        self._run(
            "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-N", "--no-locale", "-E", "UTF8"
        )

    @property
    def database(self) -> Database:
        """The database `postgres` of the server."""
        url = f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"
        return Database("postgresql", url, POSTGRES_JAR, {"user": USER, "password": "unused"})

    def start(self) -> None:
        """Start it, also after a kill. It is ready when this returns."""
        settings = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        )
        words = ("start", "-w", "-t", str(START_SECONDS_MAX), "-l", self._log, "-o", settings)
        self._run("pg_ctl", "-D", self._data, *words)

    def kill(self) -> None:
        """End all its processes at once, without a checkpoint."""
        self._run("pg_ctl", "-D", self._data, "stop", "-m", "immediate")

    def _run(self, program: str, *words: str | Path) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run(
            [postgres_program(program), *map(str, words)],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            **self._as,
        )


def postgres_program(name: str) -> str:
    """The path of a program of the newest PostgreSQL, or empty."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name) or ""


def need_databases() -> None:
    """Skip the running test without databases. In CI that is an error."""
    if postgres_program("initdb") and POSTGRES_JAR.exists() and SQLITE_JAR.exists():
        return
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{MISSING}, but CI needs them")
    pytest.skip(MISSING)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server on a free port, and end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-postgres-") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


def sqlite_database(folder: Path) -> Database:
    """A new database file."""
    return Database("sqlite", f"jdbc:sqlite:{folder / 'shop.db'}", SQLITE_JAR)


@contextmanager
def unreadable(database: Database) -> Iterator[Database]:
    """The database, while its tables cannot be read: SQLite is locked, PostgreSQL refuses the user."""
    if database.kind == "sqlite":
        path = database.url.removeprefix("jdbc:sqlite:")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("begin exclusive")
            yield database
        return
    database.ask("drop role if exists stranger")
    database.ask("create role stranger login")
    database.ask("grant usage on schema public to stranger")  # otherwise it sees no table at all
    yield replace(database, options={**database.options, "user": "stranger"})


def wait_until(condition: Any, seconds: float = 300) -> None:
    """Wait for a condition."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
