# SPDX-License-Identifier: GPL-2.0-or-later
"""The time of a client that does not print one itself: from its start to its end."""

from __future__ import annotations

import re
from typing import Final

from rocelab.plans.benchmarks.tool import Argv, Job, bad_output, positive

_TIMED: Final = 'began=$EPOCHREALTIME; "$@"; status=$?; echo "rocelab-times $began $EPOCHREALTIME"'
TIMED: Argv = ("bash", "-c", f"{_TIMED}; exit $status", "bash")
"""Put before the client's command; prints its start and end, in seconds, as the last line."""
_TIMES = re.compile(r"^rocelab-times (\d+[.,]\d{6}) (\d+[.,]\d{6})$", re.MULTILINE)


def seconds(job: Job, stdout: str) -> float:
    """Return how long the client ran. Raises CellError."""
    times = _TIMES.findall(stdout)
    if not times:
        bad_output(job, "no times of its start and its end")
    began, ended = (float(each.replace(",", ".")) for each in times[-1])
    return positive(job, "its time", ended - began)
