"""How a command ends: its error message and its exit code.

    0    success; also if the reader of a pipe closed it (`| head`)
    1    the server refused the command, or the data is bad
    2    the command line is wrong, or a file cannot be read
    3    the server cannot be reached, or the connection was lost
    130  interrupted with Ctrl-C

An error is one line on stderr. It is made harmless, because it may quote a server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer.core import TyperGroup

from penstock.client.replies import UnexpectedReply
from penstock.human.show import harmless

REFUSED = 1
BAD_FILE = 2
UNREACHABLE = 3
INTERRUPTED = 130

EXIT_CODES = """\b
Exit codes:
  0    success
  1    the server refused the command, or the data is bad
  2    the command line is wrong, or a file cannot be read
  3    the server cannot be reached, or the connection was lost
  130  interrupted (Ctrl-C)"""


class Failure(typer.TyperException):
    """The command failed. The text is for the user."""

    exit_code = REFUSED


class BadFile(Failure):
    """A file that the command line names cannot be read or used."""

    exit_code = BAD_FILE


class LoginRefused(Failure):
    """The server wants another user or password."""


class Unreachable(Failure):
    """The server cannot be reached."""

    exit_code = UNREACHABLE


class Program(TyperGroup):
    """The command with its subcommands. Every command ends in `main`."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_: object
    ) -> NoReturn:
        """Run a command and exit. Typer's `main` would draw boxes and treat a closed pipe as an error."""
        words = list(sys.argv[1:] if args is None else args)
        sys.exit(self._run(words, prog_name or "penstock"))

    def _run(self, words: list[str], name: str) -> int:
        try:
            with self.make_context(name, words) as context:
                self.invoke(context)
            sys.stdout.flush()
        except typer.Exit as ending:
            return ending.exit_code
        except BrokenPipeError:
            stop_writing()
        except OSError as error:
            stop_writing()
            say(f"cannot write: {error.strerror}")
            return REFUSED
        except KeyboardInterrupt:
            return INTERRUPTED
        except UnexpectedReply as error:
            say(str(error))
            return REFUSED
        except typer.TyperException as error:
            say(_describe(error))
            return error.exit_code
        return 0


def example(*lines: str) -> str:
    """The end of a command's help: examples and exit codes."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines), "", EXIT_CODES])


def say(text: str) -> None:
    """Print a message for the user, as one line on stderr."""
    typer.echo(f"penstock: {harmless(text)}", err=True)


def stop_writing() -> None:
    """Discard the rest of the output, including Python's last flush, because the reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _describe(error: typer.TyperException) -> str:
    text = error.format_message().rstrip(".").removeprefix("Invalid value: ")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}; see {context.command_path} --help"
