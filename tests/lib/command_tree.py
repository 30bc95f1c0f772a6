# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command of `rocelab`, and those of its parameters that take a name or a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

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
    """All commands, as click knows them, so a new one is included automatically."""
    return list(_walk(app, ()))


def _walk(command: click.Command, words: tuple[str, ...]) -> Iterator[Command]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _walk(inner, (*words, name))
        return
    yield Command(words, tuple(map(_parameter, command.params)))


def _parameter(one: click.Parameter) -> Parameter:
    takes_path = isinstance(one.type, click.Path)
    is_flag = isinstance(one, click.Option) and one.is_flag
    return Parameter(
        name=one.name,
        option=one.opts[0] if isinstance(one, click.Option) else None,
        required=one.required,
        takes_text=not is_flag and (takes_path or one.type is click.STRING),
        takes_path=takes_path,
    )
