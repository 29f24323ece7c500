"""Rules about a running server: settings, log, disk, memory, replication. It may be a Redis too.

What the user of the connection may not see is left out, and noted.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from penstock.client.replies import array, blob
from penstock.doctor.asked import Asking, streams_of
from penstock.doctor.finding import Finding, Severity, disk_findings, fsync_findings
from penstock.doctor.streams import Limits, stream_findings

MEMORY_SHARE_MAX = 0.9
CERTIFICATE_DAYS_MIN = 14
_DAY_S = 86_400
SETTINGS = ("bind", "protected-mode", "requirepass", "appendonly", "save", "maxmemory", "dir")


def server_findings(server: Asking, now_ms: int, limits: Limits) -> Iterator[Finding]:
    """Everything that is wrong with a server and the streams of one database."""
    info = _info(server)
    settings = _settings(server)
    yield from _about_log(info, settings)
    yield from _about_access(server, settings)
    yield from _about_certificate(info, now_ms // 1000)
    yield from _about_memory(info)
    yield from _about_replication(info)
    if info.get("penstock_build") == "interpreted":
        yield Finding(
            Severity.WARNING,
            "interpreted",
            "this build is interpreted and many times slower than a compiled one",
            "install a C compiler and Python's headers, then reinstall penstock",
        )
    for stream in streams_of(server):
        yield from stream_findings(stream, now_ms, limits)


def _info(server: Asking) -> dict[str, str]:
    reply = server.ask_or_none("INFO")
    text = "" if reply is None else blob(reply).decode("utf-8", "backslashreplace")
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


def _settings(server: Asking) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in SETTINGS:
        reply = server.ask_or_none("CONFIG", "GET", name)
        words = (
            [] if reply is None else [blob(word).decode(errors="replace") for word in array(reply)]
        )
        if len(words) == 2:
            found[words[0]] = words[1]
    return found


def _number(info: Mapping[str, str], name: str) -> int:
    text = info.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _about_log(info: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    if info.get("aof_last_write_status", "ok") != "ok":
        yield Finding(
            Severity.DANGER,
            "failing-log",
            "the log cannot be written: writes are refused",
            "see the server's log for the reason; free space or repair the disk",
        )
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding(
            Severity.WARNING,
            "failing-snapshot",
            "the last snapshot failed",
            "see the server's log for the reason, then BGSAVE",
        )
    if settings.get("appendonly") == "no":
        saves = bool(settings.get("save"))
        lost = "the changes since the last snapshot" if saves else "all data"
        yield Finding(
            Severity.WARNING if saves else Severity.DANGER,
            "no-log",
            f"appendonly is off: a crash or a power cut loses {lost}",
            "CONFIG SET appendonly yes",
        )
    place = settings.get("dir", "the data directory")
    size = _number(info, "penstock_disk_bytes")
    if size:
        yield from disk_findings(_number(info, "penstock_disk_free_bytes"), size, place)
    yield from fsync_findings(_number(info, "penstock_fsync_usec") / 1_000_000, place)


def _about_access(server: Asking, settings: Mapping[str, str]) -> Iterator[Finding]:
    is_open = [place for place in settings.get("bind", "").split() if not _is_loopback(place)]
    if not is_open or not _needs_no_password(server, settings):
        return
    shown = ", ".join(is_open)
    if settings.get("protected-mode") == "yes":
        yield Finding(
            Severity.ADVICE,
            "no-password",
            f"no password is set; only protected-mode refuses other machines on {shown}",
            "set requirepass, or bind to 127.0.0.1",
        )
        return
    yield Finding(
        Severity.DANGER,
        "no-password",
        f"no password is set: every machine that reaches {shown} can read and change all data",
        "CONFIG SET requirepass, or bind to 127.0.0.1",
    )


def _needs_no_password(server: Asking, settings: Mapping[str, str]) -> bool:
    """Whether the user `default` is on and has no password."""
    reply = server.ask_or_none("ACL", "GETUSER", "default")
    if reply is None:
        return settings.get("requirepass") == ""
    words = array(reply)
    named = {blob(name): value for name, value in zip(words[::2], words[1::2], strict=False)}
    flags = {blob(flag) for flag in array(named[b"flags"])}
    return {b"on", b"nopass"} <= flags


def _is_loopback(address: str) -> bool:
    address = address.removeprefix("-")
    if address in ("*", "::*"):
        return False
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return address == "localhost"


def _about_certificate(info: Mapping[str, str], now_s: int) -> Iterator[Finding]:
    expires_s = _number(info, "penstock_tls_expiry_sec")
    left_s = expires_s - now_s
    if not expires_s or left_s > CERTIFICATE_DAYS_MIN * _DAY_S:
        return
    has_expired = left_s <= 0
    when = "has expired" if has_expired else f"expires in {left_s // _DAY_S} days"
    yield Finding(
        Severity.DANGER if has_expired else Severity.WARNING,
        "certificate",
        f"the certificate of tls-port {when}: clients do not accept an expired one",
        "replace the files of tls-cert-file and tls-key-file; the server reads them by itself",
    )


def _about_memory(info: Mapping[str, str]) -> Iterator[Finding]:
    used = _number(info, "used_memory")
    limit, system = _number(info, "maxmemory"), _number(info, "total_system_memory")
    if limit and used > MEMORY_SHARE_MAX * limit:
        yield Finding(
            Severity.WARNING,
            "memory",
            f"{used / limit:.0%} of maxmemory is used: commands that add data will be refused",
            "trim streams, or raise maxmemory",
        )
    elif system and used > MEMORY_SHARE_MAX * system:
        yield Finding(
            Severity.DANGER,
            "memory",
            f"{used / system:.0%} of the machine's memory is used: the system may kill the server",
            "trim streams, and set maxmemory",
        )
    elif not limit and "maxmemory" in info:
        yield Finding(
            Severity.ADVICE,
            "no-memory-limit",
            "maxmemory is not set: streams may grow until the system kills the server",
            "set maxmemory to about half of the machine's memory; snapshots need some of it too",
        )


def _about_replication(info: Mapping[str, str]) -> Iterator[Finding]:
    if info.get("role") != "slave" or info.get("master_link_status") == "up":
        return
    primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
    problem = info.get("master_link_problem")
    yield Finding(
        Severity.DANGER,
        "replica-down",
        f"this replica has no link to its primary {primary}" + (f": {problem}" if problem else ""),
        "its data is getting old: check the primary, the network and masterauth",
    )
