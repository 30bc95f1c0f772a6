# SPDX-License-Identifier: GPL-2.0-or-later
"""The Slurm job that this process belongs to: its nodes, and how long it still has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rocelab.errors import TestbedError, UsageError
from rocelab.testbed.slurm import commands

# These values go on command lines of srun(1): no options, blanks or lists.
_JOB = re.compile(r"[0-9]{1,12}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LEFT = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d\d)")
_LEAST_SECONDS = 60


@dataclass(frozen=True)
class Allocation:
    """A running job."""

    job: str
    nodes: tuple[str, ...]
    """Slurm's names of its nodes, in Slurm's order."""
    left: str
    """How long it still has, as squeue(1) says it."""


def current(environment: Mapping[str, str] = os.environ) -> Allocation:
    """Return the allocation that this process is in.

    Raises MissingError without Slurm's commands, UsageError outside an allocation, TestbedError
    when the job has ended or is about to.
    """
    commands.need("srun", "squeue", "scontrol")
    job = environment.get("SLURM_JOB_ID", "")
    if not _JOB.fullmatch(job):
        raise UsageError(
            "this is not in a Slurm allocation",
            cause="SLURM_JOB_ID is not set, as it is in salloc and sbatch",
            action="Put `salloc --nodes=2 --exclusive` before the command, or add --submit to it.",
        )
    done = commands.ask(("squeue", "--noheader", f"--jobs={job}", "--format=%T|%L|%N"))
    state, left, listed = (*done.stdout.strip().split("|", 2), "", "", "")[:3]
    if done.returncode or state != "RUNNING":
        raise TestbedError(
            f"Slurm's job {job} does not run" + (f": it is {state!a:.40}" if state else ""),
            cause=done.stderr.strip()[-300:] or "its time is over, or it was cancelled",
            action="Begin again in a new allocation; a run continues with --resume.",
        )
    if (seconds := _seconds(left)) is not None and seconds <= _LEAST_SECONDS:
        raise TestbedError(
            f"Slurm's job {job} has only {seconds} s left",
            cause="its time limit is nearly reached",
            action="Begin again in an allocation with a longer --time.",
        )
    return Allocation(job, _expanded(listed), left)


def _seconds(left: str) -> int | None:
    """Parse `[[days-]hours:]minutes:seconds`; None if there is no limit."""
    found = _LEFT.fullmatch(left)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _expanded(listed: str) -> tuple[str, ...]:
    done = commands.ask(("scontrol", "show", "hostnames", listed))
    nodes = tuple(done.stdout.split())
    if done.returncode or not nodes or not all(map(_NODE.fullmatch, nodes)):
        raise TestbedError(
            f"cannot tell the nodes of {listed!a:.80}",
            cause=(done.stderr or done.stdout).strip()[-300:],
            action="See `scontrol show hostnames`.",
        )
    return nodes
