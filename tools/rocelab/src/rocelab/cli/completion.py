# SPDX-License-Identifier: GPL-2.0-or-later
"""Shell completion: the scripts that an installation puts into the shells' folders."""

from __future__ import annotations

import os

PROGRAM = "rocelab"
VARIABLE = "_ROCELAB_COMPLETE"
"""The scripts set it for the words that they want completed."""


def prepare() -> None:
    """Make typer answer if a completion script asks."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()


def script(shell: str) -> str:
    """Return the completion script for bash, zsh or fish."""
    from typer._completion_shared import get_completion_script

    text = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    if shell == "zsh":
        # the shell loads the file as the function _rocelab when it first completes
        text += f'\n[[ $funcstack[1] != _{PROGRAM} ]] || _{PROGRAM}_completion "$@"'
    return text + "\n"
