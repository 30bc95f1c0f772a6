# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on a node of an allocation: each is a separate job step.

Steps overlap with all others. They take the limits of the node, such as memlock, and not those of
the machine that rocelab runs on.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from rocelab.testbed.node.local_process import ByCommandLine
from rocelab.testbed.node.user_connection import UserRights

# with these, Open MPI's mpirun would ask Slurm for nodes, or take itself for a rank
_UNSET = (
    *("SLURM_JOBID", "SLURM_JOB_ID", "SLURM_STEPID", "SLURM_STEP_ID"),
    *("SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"),
    "SSH_CONNECTION",  # says how the user reached the login node
)
_FAILED = re.compile(r"srun: (error|fatal): |srun: (Force Terminated|Job step aborted)|slurmstepd")
_TASK_ENDED = re.compile(r"srun: error: [\w.-]+: tasks? [\d,-]+: ")
# slurmd was started in a folder that does not exist on the node; the command ran all the same
_NO_FOLDER = re.compile(r"slurmstepd(-[\w.-]+)?: error: Unable to return to working directory")


@dataclass(frozen=True)
class JobStep(UserRights, ByCommandLine):
    """How commands get to a node (rocelab.testbed.node.command_node.Connection)."""

    job: str
    node: str
    """Slurm's name of it."""

    @property
    def place(self) -> str:
        """The machine, for error messages."""
        return self.node

    @property
    def login(self) -> str:
        """The command line with which a person logs in."""
        return f"srun --jobid={self.job} --overlap --nodelist={self.node} --pty sh"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the local command line that runs `argv` on the node."""
        unset = [word for name in _UNSET for word in ("-u", name)]
        return [*srun(self.job, [self.node]), "--mpi=none", "env", *unset, *self.words(argv)]

    def is_lost(self, done: subprocess.CompletedProcess[bytes]) -> bool:
        """Whether Slurm failed, and not the command."""
        lines = done.stderr.decode(errors="replace").splitlines()
        return done.returncode != 0 and any(
            _FAILED.match(line) and not self.noise(line) for line in lines
        )

    def noise(self, line: str) -> bool:
        """Whether srun only remarks something, or repeats the exit status."""
        if _TASK_ENDED.match(line) or _NO_FOLDER.match(line):
            return True
        return line.startswith("srun: ") and not _FAILED.match(line)


def srun(job: str, nodes: Sequence[str], per_node: int = 1, more: str = "") -> list[str]:
    """Return srun's command line for one step: tasks in blocks, `per_node` on each node.

    `more` is a variable of theirs, as `NAME=value`.
    """
    exported = f"--export=ALL,{more}" if more else "--export=ALL"
    return [
        *("srun", f"--jobid={job}", "--overlap", "--overcommit", "--quiet", exported),
        *("--propagate=NONE", "--cpu-bind=none", "--chdir=/", "--distribution=block"),
        *(f"--nodes={len(nodes)}", f"--ntasks={len(nodes) * per_node}"),
        *(f"--ntasks-per-node={per_node}", f"--nodelist={','.join(nodes)}"),
    ]
