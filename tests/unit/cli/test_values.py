# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of the command line are what typer makes of them, and its help says what commands do."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from typer._coercion import build_runtime_param
from typer.testing import CliRunner

from rocelab.cli.app import app


class Colour(StrEnum):
    """A choice."""

    red = "red"
    green = "green"


_TEXTS = ["", "red", "RED", "5", "-5", "05", " 5 ", "+5", "5.0", "1_000", "٣", "x", "9" * 40]
_TEXTS += ["caf\udce9", "a\0b", "1e3", "true", "no", "-", ".", "/nonexistent/x", "/etc/passwd"]
_KINDS: list[tuple[Any, dict[str, Any]]] = [
    (str, {}),
    (int, {}),
    (int, {"min": 0, "max": 7}),
    (int, {"min": 0, "max": 7, "clamp": True}),
    (float, {"min": 0}),
    (bool, {}),
    (Colour, {}),
    (Path, {}),
    (Path, {"exists": True}),
    (Path, {"dir_okay": False}),
    (Path, {"resolve_path": True}),
]


def _outcome(conversion: Any, value: object, parameter: Any) -> object:
    with typer.core.TyperCommand("x").make_context("x", []) as context:
        try:
            found = conversion.coerce(value, param=parameter, ctx=context)
        except (typer.BadParameter, ValueError) as error:
            return type(error), str(error)
    return type(found), found


def _same(annotation: Any, options: dict[str, Any], value: object, *, several: bool) -> None:
    wanted = list[annotation] if several else annotation
    host = typer.Typer()
    option = typer.Option(**{"default": None, **options})

    def command(value: Any = option) -> None:
        del value

    command.__annotations__["value"] = wanted
    host.command()(command)
    parameter: Any = typer.main.get_command(host).params[0]
    ours = parameter.get_runtime_param()
    theirs = build_runtime_param(parameter.type_descriptor)
    assert type(ours) is not type(theirs)
    assert _outcome(ours, value, parameter) == _outcome(theirs, value, parameter)


@pytest.mark.parametrize(("annotation", "options"), _KINDS)
def test_a_value_is_what_typer_makes_of_it(annotation: Any, options: dict[str, Any]) -> None:
    """Plain or not, allowed or not: the same value of the same type, or the same message."""
    for text in _TEXTS:
        _same(annotation, options, text, several=False)
        _same(annotation, options, ("5", text), several=True)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(int, 5), (int, 9), (int, True), (bool, True), (Colour, Colour.red), (Path, Path("/")),
     (float, 5), (str, None)],
)  # fmt: skip
def test_so_is_a_default(annotation: Any, value: object) -> None:
    """A default has its type already; a number is still held to its limits."""
    _same(annotation, {"min": 0, "max": 7} if annotation is int else {}, value, several=False)


def test_an_unreadable_path_is_refused(tmp_path: Path) -> None:
    """As typer does it, for anyone but root."""
    secret = tmp_path / "secret"
    secret.write_text("")
    secret.chmod(0)
    _same(Path, {}, str(secret), several=False)


@pytest.mark.parametrize("width", [40, 80, 132])
def test_the_help_says_what_each_command_says_of_itself(width: int) -> None:
    """The help of all commands is written without importing them."""
    group: Any = typer.main.get_command(app)
    answer = CliRunner().invoke(app, ["--help"], terminal_width=width)
    with group.make_context("rocelab", ["up"], terminal_width=width) as context:
        formatter = context.make_formatter()
        super(type(group), group).format_commands(context, formatter)
    rows = formatter.getvalue().strip("\n").splitlines()[1:]
    assert len(rows) >= len(group.commands)
    assert set(rows) <= set(answer.output.splitlines())
