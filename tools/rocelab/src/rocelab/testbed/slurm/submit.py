# SPDX-License-Identifier: GPL-2.0-or-later
"""Submit a command as a batch job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rocelab.directory import temporary_folder
from rocelab.errors import TestbedError
from rocelab.testbed.slurm import commands

_SCRIPT = """#!/bin/sh
# written by `rocelab run --submit`: the command and its words are the job's arguments
exec "$@"
"""
_SUBMITTED = re.compile(r"([0-9]{1,12})(;[\w.-]*)?")


def submit(argv: Sequence[str], *, nodes: int, log: Path) -> tuple[str, Path]:
    """Submit `argv` as a job on that many whole nodes; return its number and its log.

    `log` is a folder. Options of sbatch(1) that a site needs come from its variables, such as
    SBATCH_PARTITION and SBATCH_TIMELIMIT. Raises MissingError, TestbedError when Slurm refuses.
    """
    commands.need("sbatch")
    pattern = str(log).replace("%", "%%") + "/slurm-%j.log"
    with temporary_folder() as folder:
        script = Path(folder, "job.sh")
        script.write_text(_SCRIPT)
        done = commands.ask(
            (
                *("sbatch", "--parsable", "--job-name=rocelab", f"--nodes={nodes}"),
                *("--ntasks-per-node=1", "--exclusive", f"--output={pattern}"),
                *("--", str(script), *argv),
            )
        )
    match = _SUBMITTED.fullmatch(done.stdout.strip())
    if done.returncode or not match:
        raise TestbedError(
            "Slurm does not take the job",
            cause=(done.stderr or done.stdout).strip()[-500:],
            action="Set what the site demands: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT.",
        )
    return match[1], log / f"slurm-{match[1]}.log"
