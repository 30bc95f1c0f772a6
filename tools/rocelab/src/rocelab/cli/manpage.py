# SPDX-License-Identifier: GPL-2.0-or-later
"""Print the manual page rocelab(1), made from the help texts: `python -m rocelab.cli.manpage`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

_HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-or-later -->
# rocelab(1)

## NAME

rocelab \N{EN DASH} {summary}

## SYNOPSIS
"""


def _help(*words: str) -> str:
    from click.testing import CliRunner

    from rocelab.cli.app import app

    environment = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="rocelab", env=environment)
    return result.output.strip()


def _commands(command: click.Command) -> Iterator[list[str]]:
    if not isinstance(command, click.Group):
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield [name]
        inner = command.get_command(context, name)
        assert inner is not None
        yield from ([name, *words] for words in _commands(inner))


def page() -> str:
    """The manual page as Markdown."""
    from rocelab.cli.app import app

    # several commands read the width of the terminal
    os.environ["COLUMNS"] = "80"
    summary = str(app.help).partition("\n")[0].rstrip(".")
    summary = summary[0].lower() + summary[1:]
    parts = [_HEAD.format(summary=summary), f"```text\n{_help()}\n```\n"]
    commands = _commands(app)
    parts += [
        f"## rocelab {' '.join(words)}\n\n```text\n{_help(*words)}\n```\n" for words in commands
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
