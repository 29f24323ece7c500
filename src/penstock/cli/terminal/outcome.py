"""How a command ends: what is said on stderr, and the exit code.

    0    done; also when whoever read our output has had enough (`| head`)
    1    the server refused, or the data is bad
    2    the command line is wrong
    3    the server cannot be reached, or went away
    130  interrupted with Ctrl-C

An error is one line on stderr, made harmless, since it may quote a server.
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
UNREACHABLE = 3
INTERRUPTED = 130

EXIT_CODES = """\b
Exit codes:
  0    done
  1    the server refused, or the data is bad
  2    the command line is wrong, or a file that it names
  3    the server cannot be reached, or went away
  130  interrupted (Ctrl-C)"""


class Failure(typer.TyperException):
    """The command cannot go on; its text is for the user."""

    exit_code = REFUSED


class Unreachable(Failure):
    """Nobody answers at the other end."""

    exit_code = UNREACHABLE


class Program(TyperGroup):
    """The command with its subcommands. Every way to end passes through `main`."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_: object
    ) -> NoReturn:
        """Run and exit. Typer's own `main` would draw boxes, and call a closed pipe an error."""
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
    """The end of a command's help: examples, and what the exit codes mean."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines), "", EXIT_CODES])


def say(text: str) -> None:
    """One line for the person at the terminal, apart from the output."""
    typer.echo(f"penstock: {harmless(text)}", err=True)


def stop_writing() -> None:
    """Nobody reads our output any more: let the rest of it, and Python's last flush, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _describe(error: typer.TyperException) -> str:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}; see {context.command_path} --help"
