# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command of `rocelab`, and those of its parameters that take a name or a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main

from rocelab.cli.app import app


@dataclass(frozen=True)
class Parameter:
    """An argument, or an option with its first spelling."""

    name: str
    option: str | None
    required: bool
    takes_text: bool
    """A string or a path; not a number, a flag or one of a few words."""
    takes_path: bool


@dataclass(frozen=True)
class Command:
    """A command by its words, such as `study report`."""

    words: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """Its words with spaces between."""
        return " ".join(self.words)


def commands() -> list[Command]:
    """All commands, as typer knows them, so a new one is included automatically."""
    return list(_walk(typer.main.get_command(app), ()))


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[Command]:
    if inner := getattr(command, "commands", None):
        for name, one in inner.items():
            yield from _walk(one, (*words, name))
        return
    yield Command(words, tuple(_parameter(one) for one in command.params if one.name != "help"))


def _parameter(one: Any) -> Parameter:
    annotation = str(one.type_descriptor.annotation)
    return Parameter(
        name=one.name,
        option=one.opts[0] if one.param_type_name == "option" else None,
        required=one.required,
        takes_text=not getattr(one, "is_flag", False)
        and ("str" in annotation or "Path" in annotation),
        takes_path="Path" in annotation,
    )
