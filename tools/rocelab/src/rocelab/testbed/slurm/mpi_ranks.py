# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of srun's plugins starts the ranks of the nodes' Open MPI."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rocelab.testbed.node import Node
from rocelab.testbed.slurm import commands
from rocelab.testbed.slurm.job_step import srun

_PLUGINS = re.compile(r"\b(?:pmix(?:_v\d+)?|pmi2)\b")
_PMIX = re.compile(r"^mca:pmix:(?:ext|pmix)\d|^ompi:version:full:[5-9]\.", re.MULTILINE)
_PMI2 = re.compile(r"^mca:pmix:s2:", re.MULTILINE)


def plugin(node: Node) -> str:
    """Return the plugin, empty if mpirun must start the ranks.

    The user's choice is `SLURM_MPI_TYPE`, as for srun(1).
    """
    done = commands.ask(("srun", "--mpi=list"))
    offered = _PLUGINS.findall(done.stdout + done.stderr)
    asked = os.environ.get("SLURM_MPI_TYPE", "")
    if asked:
        return asked if asked in offered else ""
    known = node.run(("ompi_info", "--all", "--parsable"), check=False).stdout
    return chosen(offered, known)


# For a fence without data, Slurm's default `mixed` takes a tree, which does not wait for the other
# nodes (22.05: tests/unit/testbed/test_slurm_cluster.py). Then a rank leaves MPI_Finalize, and
# another that still disconnects from it by UCX waits for answers that nobody gives.
_FENCES_THAT_WAIT = "SLURM_PMIX_FENCE=ring"


def starter(job: str, nodes: Sequence[str], per_node: int, plugin: str) -> tuple[str, ...]:
    """Return the command line before that of a rank, which starts the ranks of an MPI job."""
    words = srun(job, nodes, per_node, _FENCES_THAT_WAIT)
    return (*words, "--kill-on-bad-exit=1", f"--mpi={plugin}")


def chosen(offered: list[str], ompi_info: str) -> str:
    """Choose from the plugins what Open MPI, by `ompi_info --parsable`, supports."""
    if "pmix" in offered and _PMIX.search(ompi_info):
        return "pmix"
    if "pmi2" in offered and _PMI2.search(ompi_info):
        return "pmi2"
    return ""
