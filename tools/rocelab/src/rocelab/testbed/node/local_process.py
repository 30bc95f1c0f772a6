# SPDX-License-Identifier: GPL-2.0-or-later
"""The process on this machine that stands for a command on a node."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


def start(argv: Sequence[str], *, lifeline: bool) -> subprocess.Popen[bytes]:
    """Start a local command line; with `lifeline`, its standard input is a pipe, else empty."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C must reach only rocelab, which stops its commands in order
        start_new_session=True,
    )
