"""`penstock doctor`: what is wrong with a server or a data directory, most dangerous first."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import redis
import typer

from penstock.cli.connect import URL_DEFAULT, ServerConnection, Url
from penstock.cli.terminal.moment import parse_duration
from penstock.cli.terminal.outcome import BadFile, Failure, LoginRefused, Unreachable
from penstock.cli.terminal.output import Stdout
from penstock.client.replies import Reply
from penstock.doctor.asked import Word
from penstock.doctor.directory import directory_findings
from penstock.doctor.finding import Finding, Severity, is_bad, ordered
from penstock.doctor.server import server_findings
from penstock.doctor.streams import Limits
from penstock.human.show import harmless, json_line
from penstock.persist.disk import SystemDisk, reason

EPILOG = """\b
Examples:
  penstock doctor                              the server at PENSTOCK_URL
  penstock doctor --url redis://10.0.0.1:6379  another one
  penstock doctor penstock-data                a data directory: its disk and its files
  penstock doctor --json | jq -r .rule

\b
Exit codes:
  0    nothing is wrong; there may be advice
  1    a danger or a warning
  2    the command line is wrong, or the directory cannot be read
  3    the server cannot be reached
  130  interrupted (Ctrl-C)"""


SHOWN_MAX = 10  # of one rule, for people


class _Patient:
    """A server that may refuse commands. `refused`: the first word and text of each refusal."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server
        self.refused: dict[str, str] = {}

    def ask_or_none(self, *words: Word) -> Reply | None:
        try:
            return self._server.ask(*words)
        except (Unreachable, LoginRefused):
            raise
        except Failure as error:
            self.refused[str(words[0])] = error.format_message()
            return None

    def ask_each(self, commands: Sequence[Sequence[Word]]) -> list[Reply | None]:
        replies = self._server.ask_all(commands)
        return [None if isinstance(one, redis.RedisError) else one for one in replies]


def doctor(
    directory: Annotated[
        str | None,
        typer.Argument(metavar="[DIR]", help="A data directory, instead of a server."),
    ] = None,
    idle: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="A consumer counts as dead after this time without a command."
        ),
    ] = "1h",
    entries: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="A stream that was never trimmed is reported from N entries on.",
        ),
    ] = Limits().entries,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each finding.")
    ] = False,
    url: Url = URL_DEFAULT,
) -> None:
    """Find what is wrong with a server or a data directory.

    The most dangerous comes first.

    A server is asked for its settings, its state, and the streams of one database; any Redis can be asked.
    Of a directory, the disk is measured, and the files are read as a server reads them. That needs as much
    memory as a server with this data. Nothing is changed; a server may run there.
    """
    limits = Limits(parse_duration(idle), entries)
    if directory is not None:
        findings = _of_directory(directory, limits)
    else:
        with ServerConnection(url) as server:
            patient = _Patient(server)
            found = list(server_findings(patient, server.now_ms(), limits))
            findings = ordered([*found, *refusals(patient.refused)])
    _show(findings, json)
    if is_bad(findings):
        raise typer.Exit(1)


def _of_directory(path: str, limits: Limits) -> list[Finding]:
    now_ms = time.time_ns() // 1_000_000
    try:
        return ordered(directory_findings(path.rstrip("/") or "/", SystemDisk(), now_ms, limits))
    except OSError as error:
        raise BadFile(reason(error)) from None


def refusals(refused: Mapping[str, str]) -> Iterator[Finding]:
    """What the user may not see: a fault may hide there."""
    for command, text in refused.items():
        yield Finding(
            Severity.ADVICE,
            "not-looked-at",
            f"not looked at: {command} was refused: {text}",
            f"ask as a user who may run {command}",
        )


def _show(findings: list[Finding], json: bool) -> None:
    output = Stdout()
    if json:
        for finding in findings:
            about = {"severity": finding.severity.name.lower(), "rule": finding.rule}
            output.line(json_line({**about, "what": finding.what, "remedy": finding.remedy}))
        return
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.rule] += 1
        if shown[finding.rule] <= SHOWN_MAX:
            output.line(harmless(f"{finding.severity.name.lower()}: {finding.what}"))
            output.line(harmless(f"    {finding.remedy}"))
    for rule, count in shown.items():
        if count > SHOWN_MAX:
            output.line(f"{count - SHOWN_MAX:,} more of the rule {rule}; --json lists them all")
    if not findings:
        output.line("nothing is wrong")
