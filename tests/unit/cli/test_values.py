# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of the command line, and that its help says what commands do."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rocelab.cli import options
from rocelab.cli.app import app


class Colour(StrEnum):
    """A choice whose names are not its values."""

    RED = "light red"
    GREEN = "green"


@click.command()
@click.option("--colour", type=options.OneOf(Colour), default=Colour.RED.value, show_default=True)
def paint(colour: Colour) -> None:
    """Print a member of the enumeration."""
    click.echo(repr(colour))


def test_a_choice_is_a_member_by_its_value() -> None:
    runner = CliRunner()
    assert runner.invoke(paint, ["--colour", "green"]).output == f"{Colour.GREEN!r}\n"
    assert runner.invoke(paint, []).output == f"{Colour.RED!r}\n"
    assert "[light red|green]" in (text := runner.invoke(paint, ["--help"]).output)
    assert "[default: light red]" in text


@pytest.mark.parametrize("word", ["GREEN", "Green", "gre", ""])
def test_other_words_are_refused(word: str) -> None:
    done = CliRunner().invoke(paint, ["--colour", word])
    assert done.exit_code == 2
    assert "is not one of 'light red', 'green'" in done.output


def test_an_unreadable_path_is_refused(tmp_path: Path) -> None:
    """For anyone but root, who may read it."""
    secret = tmp_path / "secret"
    secret.write_text("")
    secret.chmod(0)
    try:
        secret.read_text()
    except PermissionError:
        with pytest.raises(click.BadParameter, match="not readable"):
            options.PATH.convert(str(secret), None, None)
    else:
        assert options.PATH.convert(str(secret), None, None) == secret


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_threshold_is_a_number(value: str) -> None:
    done = CliRunner().invoke(app, ["ab", "events", "delay", "--threshold", value])
    assert "is no percentage" in str(done.exception)


@pytest.mark.parametrize("width", [40, 80, 132])
def test_the_help_says_what_each_command_says_of_itself(width: int) -> None:
    """The help of all commands is written without importing them."""
    answer = CliRunner().invoke(app, ["--help"], terminal_width=width)
    with app.make_context("rocelab", ["up"], terminal_width=width) as context:
        formatter = context.make_formatter()
        click.Group.format_commands(app, context, formatter)
    rows = formatter.getvalue().strip("\n").splitlines()[1:]
    assert len(rows) >= len(app.list_commands(context))
    assert set(rows) <= set(answer.output.splitlines())
