# SPDX-License-Identifier: GPL-2.0-or-later
"""Write docs/man/rocelab.1.md from the commands themselves: `python -m rocelab.cli.manpage FILE`.

A test compares the file with what this gives, so neither can drift.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

_HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-or-later -->
<!-- made by `python -m rocelab.cli.manpage docs/man/rocelab.1.md`; do not edit -->
# rocelab(1)
"""


def _help(*words: str) -> str:
    from typer.testing import CliRunner

    from rocelab.cli.app import app

    environment = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="rocelab", env=environment)
    return result.output.strip()


def _commands(app: typer.Typer) -> list[list[str]]:
    return [
        [command.name or command.callback.__name__]
        for command in app.registered_commands
        if command.callback
    ]


def page() -> str:
    """The whole manual page, as Markdown."""
    from rocelab.cli.app import app

    # several commands read the width of the terminal
    os.environ["COLUMNS"] = "80"
    commands = _commands(app)
    for group in app.registered_groups:
        inner = group.typer_instance
        if inner is not None and inner.info.name:
            name = inner.info.name
            commands += [[name], *([name, *words] for words in _commands(inner))]
    parts = [_HEAD, f"```text\n{_help()}\n```\n"]
    parts += [
        f"## rocelab {' '.join(words)}\n\n```text\n{_help(*words)}\n```\n" for words in commands
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
