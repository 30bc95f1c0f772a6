# SPDX-License-Identifier: GPL-2.0-or-later
"""The subcommands: each is imported when it is used, so that every command starts fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from rocelab.cli import values

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

values.install()


@dataclass(frozen=True)
class _Place:
    """Where a command, or a group of them, is defined."""

    module: str
    name: str
    """A function, or a `typer.Typer`."""
    summary: str
    """For `rocelab --help`: the first sentence of its own help, which a test compares."""
    passes_options_on: bool = False
    """Options that it does not know belong to the program that it starts."""
    runs_the_rest: bool = False
    """All that follows its first word, options as well, belongs to the program that it starts."""


_GROUPS = {
    "Captures": {
        "analyze": _Place(
            "analyze", "analyze", "Decode, verify and follow the RoCE packets in captures."
        ),
        "annotate": _Place(
            "annotate",
            "annotate",
            "Copy a capture and comment each packet with what is known about it.",
        ),
        "join": _Place(
            "join", "join", "Match each frame to its sender's and receiver's driver records."
        ),
        "export": _Place(
            "export", "export", "Write the life of each packet across both machines as a trace."
        ),
    },
    "Nodes": {
        "up": _Place(
            "testbed", "up", "Bring up nodes with the instrumented driver and leave them up."
        ),
        "down": _Place("testbed", "down", "Stop a testbed's nodes and remove its files."),
        "ssh": _Place(
            "testbed", "ssh", "Log in to a node, or run a command there.", passes_options_on=True
        ),
        "exec": _Place(
            "execute",
            "execute",
            "Run your own command on nodes, with its streams and its exit code.",
            runs_the_rest=True,
        ),
        "status": _Place(
            "testbed",
            "status",
            "List running testbeds, the state of their nodes, and the saved machines.",
        ),
        "hosts": _Place("hosts", "app", "Prepare your own hosts for measuring, and restore them."),
    },
    "Measure": {
        "run": _Place("run", "run", "Carry out a plan and report."),
        "ab": _Place(
            "ab",
            "ab",
            "Say whether a change of the driver makes packets costlier, where, and by how much.",
        ),
        "lines": _Place(
            "lines", "lines", "Say what a packet costs in each stage, kernel line by kernel line."
        ),
        "study": _Place(
            "study", "app", "Published studies: run their plans and check their claims."
        ),
    },
    "Judge": {
        "show": _Place(
            "show", "show", "Print a run's tables again, as `rocelab run` does when it ends."
        ),
        "report": _Place("report", "report", "Write a run's report again."),
        "compare": _Place("compare", "compare", "Judge run B against run A, cell by cell."),
    },
    "Set-up": {
        "doctor": _Place(
            "doctor", "doctor", "Check what this machine has and say how to get what it lacks."
        ),
        "wireshark": _Place(
            "wireshark", "app", "Install rocelab's plugin, profile and extcap into Wireshark."
        ),
        "clean": _Place(
            "testbed", "clean", "Remove the saved machines: the next testbed boots again."
        ),
    },
}
_PLACES = {name: place for group in _GROUPS.values() for name, place in group.items()}


def _load(name: str) -> Command:
    """Import a command, and have typer build it."""
    place = _PLACES[name]
    found = getattr(import_module(f"rocelab.cli.{place.module}"), place.name)
    if isinstance(found, typer.Typer):
        return typer.main.get_group(found)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    settings = {"ignore_unknown_options": True} if place.passes_options_on else None
    if place.runs_the_rest:
        settings = {"allow_interspersed_args": False}
    alone.command(name, context_settings=settings)(found)
    return typer.main.get_command(alone)


class _Commands(Mapping[str, "Command"]):
    """All commands by name; one is imported when it is first taken."""

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in _PLACES:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in _PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class Commands(TyperGroup):
    """The group of all commands; its help imports none of them."""

    def __init__(self, *, name: str, **attributes: object) -> None:
        super().__init__(name=name, **cast("Any", attributes))
        # typer only reads it
        self.commands = cast("dict[str, Command]", _Commands())

    def list_commands(self, ctx: Context) -> list[str]:
        """Their names, in the order of the help."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write what each command does, group by group."""
        del ctx
        # what typer leaves for the text beside the longest name
        limit = formatter.width - 6 - max(map(len, _PLACES))
        longest = max(map(len, _PLACES))
        for title, places in _GROUPS.items():
            rows = [
                (
                    name.ljust(longest),
                    TyperCommand(name, help=place.summary).get_short_help_str(limit),
                )
                for name, place in places.items()
            ]
            with formatter.section(title):
                formatter.write_dl(rows)
