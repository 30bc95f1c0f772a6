# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Port = Annotated[
    list[int] | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        help="Another UDP port of RoCE v2, besides 4791; repeatable.",
    ),
]
