# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of parameters, and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import click

from rocelab import kernel_lines
from rocelab.errors import UsageError
from rocelab.strict import quote

DEFAULT = "default"
"""The testbed of who names none."""

PATH = click.Path(path_type=Path)


class OneOf(click.Choice[StrEnum]):
    """A member of an enumeration, by its value; click itself takes names."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return what a user types."""
        del ctx
        return str(choice)


class Profile(StrEnum):
    """The rules that connections must keep."""

    default = "default"
    gbn = "gbn"


class Group(click.Group):
    """Commands in the order in which a module defines them."""

    def __init__(self, *, name: str, help: str) -> None:  # noqa: A002 - click's name
        super().__init__(name, help=help, no_args_is_help=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        del ctx
        return list(self.commands)


port = click.option(
    "--port",
    type=click.IntRange(1, 65535),
    multiple=True,
    metavar="PORT",
    help="Another UDP port of RoCE v2, besides 4791; repeatable.",
)

profile = click.option(
    "--profile",
    type=OneOf(Profile),
    default=Profile.default.value,
    help="gbn: report breaches of strict Go-Back-N as errors, not notes.",
)

join_where = click.argument(
    "where",
    type=PATH,
    metavar="WHERE",
    help="A run folder, one of its cells, or a capture between nodes.",
)
join_traces = click.option(
    "--trace",
    type=PATH,
    multiple=True,
    metavar="NODE.pcapng",
    help="For a capture: a node's rxedump trace; repeatable.",
)
one_clock = click.option(
    "--one-clock", is_flag=True, help="One machine wrote all files (already known for runs)."
)

plan_commands = click.option(
    "--commands",
    is_flag=True,
    help="Let the plan's own commands run on your hosts, or here (--native).",
)
icount = click.option(
    "--icount", is_flag=True, help="Emulate and count instructions, even where KVM works."
)
comparison_out = click.option(
    "--out",
    type=PATH,
    default=Path("runs"),
    metavar="DIR",
    help="Where to put the comparison's folder.",
)
run_out = click.option(
    "--out", type=PATH, default=Path("runs"), metavar="DIR", help="Where to put the run folder."
)

as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead (docs/formats/json.md)."
)
testbed_name = click.option("--name", default=DEFAULT, metavar="NAME", help="The testbed's name.")
inventory = click.option(
    "--inventory",
    type=PATH,
    metavar="FILE",
    help="TOML file of hosts; ~/.config/rocelab/hosts.toml by default.",
)


def check_line(line: str) -> str:
    if line not in kernel_lines.LINES:
        raise UsageError(
            f"there is no kernel line {quote(line)}",
            cause="the driver's patches and the node's image exist for some lines only",
            action=f"Choose from {', '.join(kernel_lines.LINES)}.",
        )
    return line


kernel_line = click.option(
    "--line",
    default=kernel_lines.DEFAULT_LINE,
    metavar="LINE",
    callback=lambda _context, _parameter, line: check_line(line),
    help="Kernel line.",
)
packages = click.option(
    "--package",
    multiple=True,
    metavar="NAME",
    help="Also install this Debian package, .deb file or folder of them; repeatable.",
)
