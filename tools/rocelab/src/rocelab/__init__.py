# SPDX-License-Identifier: GPL-2.0-or-later
"""rocelab: see where every microsecond of a Soft RoCE packet goes.

>>> import rocelab
>>> found = rocelab.open("trace.pcapng")  # doctest: +SKIP
>>> print(found)  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocelab.version import VERSION

if TYPE_CHECKING:
    from rocelab.api import Capture

__version__ = VERSION


def open(  # noqa: A001 - as gzip.open and tarfile.open
    *captures: str | os.PathLike[str],
    filter: str = "",  # noqa: A002 - the option's name
    ports: Sequence[int] = (),
    icrc: bool = True,
    go_back_n: bool = False,
    max_findings: int = 1000,
    max_connections: int = 16384,
) -> Capture:
    """Analyse captures, which are parts of one, as `rocelab analyze --merge` does.

    `filter` takes the terms of `--filter`, and the others are the command's options, too. Raises
    `rocelab.errors.UsageError` if a capture cannot be opened or has no packet.
    """
    # the command line imports this module, and starts fast
    from rocelab.api import run_analysis

    return run_analysis(
        captures,
        only=filter,
        ports=ports,
        icrc=icrc,
        go_back_n=go_back_n,
        max_findings=max_findings,
        max_connections=max_connections,
    )
