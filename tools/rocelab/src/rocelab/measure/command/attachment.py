# SPDX-License-Identifier: GPL-2.0-or-later
"""What `rocelab exec --watch` has that a plan has not: streams, files to fetch, a status."""

from __future__ import annotations

from dataclasses import dataclass

from rocelab.errors import RocelabError
from rocelab.measure.command.request import Request


@dataclass
class Attachment:
    """A request whose command a run of one cell watches, and how that ended."""

    request: Request
    status: int | None = None
    """The command's; None: it did not run to its end."""
    error: RocelabError | None = None
    """Why not."""
