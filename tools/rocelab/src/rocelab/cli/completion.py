# SPDX-License-Identifier: GPL-2.0-or-later
"""Shell completion: the scripts that an installation puts into the shells' folders."""

from __future__ import annotations

import os

import click

from rocelab.errors import UsageError

PROGRAM = "rocelab"
VARIABLE = "_ROCELAB_COMPLETE"
"""The scripts set it for the words that they want completed."""


def answer(commands: click.Command) -> int | None:
    """Print what a completion script asks for; return the exit code, None if none asks."""
    if VARIABLE not in os.environ:
        return None
    from click.shell_completion import shell_complete

    try:
        return shell_complete(commands, {}, PROGRAM, VARIABLE, os.environ[VARIABLE])
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"cannot complete: {error}",
            cause=f"{VARIABLE} is set, and COMP_WORDS and COMP_CWORD are not a shell's",
            action=f"Unset {VARIABLE}; completion scripts set it themselves.",
        ) from error


def script(shell: str) -> str:
    """Return the completion script for bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(click.Command(PROGRAM), {}, PROGRAM, VARIABLE).source().lstrip()
