# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several commands share."""

from __future__ import annotations

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


def _known_line(line: str) -> str:
    if line not in kernel_lines.LINES:
        raise UsageError(
            f"there is no kernel line {shown(line)}",
            cause="the driver's patches and the node's image exist for some lines only",
            action=f"Choose from {', '.join(kernel_lines.LINES)}.",
        )
    return line


KernelLine = Annotated[
    str, typer.Option("--line", help="Kernel line.", metavar="LINE", callback=_known_line)
]
