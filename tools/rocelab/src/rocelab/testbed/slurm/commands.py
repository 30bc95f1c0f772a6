# SPDX-License-Identifier: GPL-2.0-or-later
"""Run Slurm's own commands, within a limit of time."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from rocelab.errors import MissingError, TestbedError

_SECONDS = 15


def need(*programs: str) -> None:
    """Raise MissingError if one of Slurm's commands is not installed."""
    for program in programs:
        if not shutil.which(program):
            raise MissingError(
                f"{program} is not installed",
                cause="provider slurm reaches nodes by Slurm's commands",
                action="Run rocelab where you submit jobs, or `apt-get install slurm-client`.",
            )


def ask(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that asks slurmctld. Raises TestbedError when no answer comes."""
    try:
        return subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TestbedError(
            f"`{' '.join(argv[:2])}` did not end within {_SECONDS} s",
            cause="slurmctld does not answer",
            action="See `scontrol ping`.",
        ) from None
