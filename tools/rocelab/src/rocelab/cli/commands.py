# SPDX-License-Identifier: GPL-2.0-or-later
"""The subcommands: each is imported when it is used, so that every command starts fast."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, cast

import click


class _Place(NamedTuple):
    """Where a command, or a group of them, is defined."""

    module: str
    name: str
    """Of the command, or the group, in its module."""
    summary: str
    """For `rocelab --help`: the first sentence of its own help, which a test compares."""


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
        "ssh": _Place("testbed", "ssh", "Log in to a node, or run a command there."),
        "exec": _Place(
            "execute",
            "execute",
            "Run your own command on nodes, with its streams and its exit code.",
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


class Commands(click.Group):
    """The group of all commands; its help imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the help."""
        del ctx
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        place = _PLACES.get(cmd_name)
        if place is None:
            return None
        return cast(
            "click.Command", getattr(import_module(f"rocelab.cli.{place.module}"), place.name)
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, group by group."""
        del ctx
        longest = max(map(len, _PLACES))
        # what click leaves for the text after the longest name
        limit = formatter.width - 6 - longest
        for title, places in _GROUPS.items():
            rows = [
                (
                    name.ljust(longest),
                    click.Command(name, help=place.summary).get_short_help_str(limit),
                )
                for name, place in places.items()
            ]
            with formatter.section(title):
                formatter.write_dl(rows)
