"""The directives of the process and its log: a part of the table in directives.py."""

from __future__ import annotations

from penstock.server.config.apply import apply_log_level
from penstock.server.config.kinds import Choice, Text, YesNo
from penstock.server.config.settings import AT_START, Directive


def _not_upstart(value: str) -> str | None:
    return "upstart is not supported: no, systemd or auto" if value == "upstart" else None


PROCESS = (
    Directive(
        "loglevel",
        Choice(("debug", "verbose", "notice", "warning", "nothing")),
        "notice",
        "Lowest level of messages that are logged.",
        apply=apply_log_level,
    ),
    Directive(
        "logfile",
        Text("a path"),
        "",
        "Log file; empty for stderr. A file that was moved away or removed is made again.",
        AT_START,
    ),
    Directive(
        "log-format",
        Choice(("text", "json")),
        "text",
        "Messages as lines of text, or one JSON object on each line. Not in Redis.",
        AT_START,
    ),
    Directive(
        "daemonize",
        YesNo(),
        False,
        "Run in the background. Set `logfile` too: otherwise the log is lost.",
        AT_START,
    ),
    Directive(
        "pidfile",
        Text("a path"),
        "",
        "File with the process id while the server runs; empty for none.",
        AT_START,
    ),
    Directive(
        "supervised",
        Choice(("upstart", "systemd", "auto", "no")),
        "no",
        "`systemd`: tell systemd when the server is ready and alive (Type=notify, WatchdogSec). `auto`: if"
        " systemd has started it. A supervised server is never in the background.",
        AT_START,
        check=_not_upstart,
    ),
)
