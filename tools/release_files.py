"""Writes the data files of the installed release, as a fixture for the tests of upgrades.

    python tools/release_files.py tests/fixtures/releases

Run it once for each release, with that release installed. It starts a server, changes data of every kind, and
keeps

    VERSION/log          the data directory of a server that was killed: base and increment
    VERSION/snapshot     dump.rdb alone
    VERSION/state.json   what clients saw at the end

Every later version must start on these files and show the same state (tests/server/test_upgrades.py).
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import redis

FAR_S = 4_000_000_000  # an expiry in the year 2096


def main(folder: Path) -> None:
    version = subprocess.run(
        [sys.executable, "-m", "penstock", "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    target = folder / version
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        port = free_port()
        command = [sys.executable, "-m", "penstock", "serve", "--port", str(port)]
        process = subprocess.Popen([*command, "--dir", str(data)], stderr=subprocess.DEVNULL)
        try:
            client = connect(port)
            fill(client, 0)
            client.bgrewriteaof()
            while client.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(0.05)
            fill(client, 1)
            client.save()
            state = state_of(client)
        finally:
            process.kill()
            process.wait()
        (target / "snapshot").mkdir()
        shutil.move(data / "dump.rdb", target / "snapshot" / "dump.rdb")
        shutil.copytree(data / "appendonlydir", target / "log" / "appendonlydir")
    (target / "state.json").write_text(json.dumps(state, indent=1, sort_keys=True) + "\n")
    print(f"wrote {target}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def connect(port: int) -> redis.Redis:
    """A client, when the server is ready."""
    client = redis.Redis(port=port, decode_responses=True, encoding_errors="backslashreplace")
    for _ in range(600):
        try:
            client.ping()
        except (redis.ConnectionError, redis.BusyLoadingError):
            time.sleep(0.05)
        else:
            return client
    raise SystemExit("the server does not start")


def fill(client: redis.Redis, part: int) -> None:
    """Changes of every kind; `part` makes them different."""
    for number in range(1, 151):
        client.xadd("orders", {"n": number, "text": "x" * (number % 7)}, id=f"{part + 1}-{number}")
    client.xdel("orders", f"{part + 1}-3", f"{part + 1}-100")
    client.xadd("orders", {"odd": "fields", "binary": b"\xff\x00\r\n"}, id=f"{part + 1}-200")
    client.xgroup_create("orders", f"g{part}", "0")
    client.xreadgroup(f"g{part}", "ann", {"orders": ">"}, count=5)
    client.xreadgroup(f"g{part}", "bob", {"orders": ">"}, count=3)
    client.xack("orders", f"g{part}", "1-1")
    client.xtrim("orders", maxlen=290, approximate=False)
    client.rpush("list", *(f"{part}-{number}" for number in range(300)))
    client.set(f"text{part}", "value", exat=FAR_S)
    client.incrby("number", 41)
    client.set("gone", "1")
    client.delete("gone")


def state_of(client: redis.Redis) -> dict[str, Any]:
    """What a client can see."""
    entries = [[key, fields] for key, fields in client.xrange("orders")]  # type: ignore[union-attr]
    groups = {}
    for group in client.xinfo_groups("orders"):
        rows = client.xpending_range("orders", group["name"], "-", "+", 100)
        pending = [[r["message_id"], r["consumer"], r["times_delivered"]] for r in rows]
        groups[group["name"]] = [group["last-delivered-id"], group["consumers"], pending]
    about = client.xinfo_stream("orders")
    return {
        "keys": sorted(client.keys()),
        "entries": entries,
        "last_id": about["last-generated-id"],
        "length": about["length"],
        "groups": groups,
        "list": client.lrange("list", 0, -1),
        "strings": {name: client.get(name) for name in ("text0", "text1", "number")},
        "expiry": client.expiretime("text0"),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
