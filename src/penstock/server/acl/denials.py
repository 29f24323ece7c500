"""The error replies for a command that a user may not run."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.compat import Compat
from penstock.engine.table import Command
from penstock.errors import CommandError
from penstock.server.acl.permissions import CHANNEL, COMMAND, GROUP, KEY, Denial
from penstock.server.acl.user import User
from penstock.server.command_catalogue import shown_name

REASONS = {COMMAND: "command", KEY: "key", GROUP: "group", CHANNEL: "channel"}
_NOUNS = {KEY: "key", GROUP: "consumer group", CHANNEL: "channel"}
_OLD = {
    KEY: "one of the keys used as arguments",
    GROUP: "the consumer group used as an argument",
    CHANNEL: "one of the channels used as arguments",
}
_LOST = {
    COMMAND: "no permission to execute the command or subcommand",
    KEY: "no permission to touch the specified keys",
    GROUP: "no permission to access the specified consumer group",
    CHANNEL: "no permission to access one of the channels used as arguments",
}


def refusal(user: User, command: Command, denial: Denial, compat: Compat) -> CommandError:
    """The reply to a client."""
    if denial.reason == COMMAND:
        who = f"User {user.shown_name}" if compat.denials_name_user else "this user"
        text = f"{who} has no permissions to run the '{shown_name(command)}' command"
    elif compat.denials_name_user:
        text = f"No permissions to access a {_NOUNS[denial.reason]}"
    else:
        text = f"this user has no permissions to access {_OLD[denial.reason]}"
    return CommandError(text, "NOPERM")


def refusal_in_exec(denial: Denial) -> CommandError:
    """The reply to a queued command that was allowed when it was queued."""
    return CommandError(
        "ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This"
        f" command is no longer allowed for the following reason: {_LOST[denial.reason]}",
        "NOPERM",
    )


def dry_run_text(
    user: User, command: Command, frame: Frame, denial: Denial, compat: Compat
) -> bytes:
    """The reply of ACL DRYRUN."""
    who = b"User " + user.name if compat.denials_name_user else b"This user"
    if denial.reason == COMMAND:
        return who + f" has no permissions to run the '{shown_name(command)}' command".encode()
    noun = _NOUNS[denial.reason].encode()
    return who + b" has no permissions to access the '" + frame.piece(denial.at) + b"' " + noun
