# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocelab import kernel_lines
from rocelab.errors import UsageError
from rocelab.strict import shown

Port = Annotated[
    list[int] | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        help="Another UDP port of RoCE v2, besides 4791; repeatable.",
    ),
]

JoinWhere = Annotated[
    Path,
    typer.Argument(
        metavar="WHERE", help="A run folder, one of its cells, or a capture between nodes."
    ),
]
JoinTraces = Annotated[
    list[Path] | None,
    typer.Option(
        "--trace", metavar="NODE.pcapng", help="For a capture: a node's rxedump trace; repeatable."
    ),
]
OneClock = Annotated[
    bool,
    typer.Option("--one-clock", help="One machine wrote all files (already known for runs)."),
]

Icount = Annotated[
    bool,
    typer.Option("--icount", help="Emulate and count instructions, even where KVM works."),
]
ComparisonOut = Annotated[
    Path, typer.Option(help="Where to put the comparison's folder.", metavar="DIR")
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead (docs/formats/json.md).")]


def known_line(line: str) -> str:
    if line not in kernel_lines.LINES:
        raise UsageError(
            f"there is no kernel line {shown(line)}",
            cause="the driver's patches and the node's image exist for some lines only",
            action=f"Choose from {', '.join(kernel_lines.LINES)}.",
        )
    return line


KernelLine = Annotated[
    str, typer.Option("--line", help="Kernel line.", metavar="LINE", callback=known_line)
]
