# SPDX-License-Identifier: GPL-2.0-or-later
"""The Slurm job that this process belongs to: its nodes, and how long it still has."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rocelab.errors import TestbedError, UsageError
from rocelab.testbed.slurm import commands

# These values go on command lines of srun(1): no options, blanks or lists.
_JOB = re.compile(r"[0-9]{1,12}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LEFT = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d\d)")
_MIN_SECONDS = 60
_TIME_OUT, _TIME_LIMIT = "TIMEOUT", "TimeLimit"
_CAUSES = {
    "NODE_FAIL": "one of its nodes failed; with `salloc --no-kill` it would have gone on",
    "PREEMPTED": "another job took its nodes",
    "PENDING": "it waits for its nodes, perhaps again after one failed",
}


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
    job_state = _look(job)
    if job_state.ended:
        raise job_state.ended
    if (seconds := _seconds(job_state.left)) is not None and seconds <= _MIN_SECONDS:
        raise TestbedError(
            f"Slurm's job {job} has only {seconds} s left",
            cause="its time limit is nearly reached",
            action="Begin again in an allocation with a longer --time.",
        )
    return Allocation(job, _expand(job_state.nodes), job_state.left)


def check_running(job: str) -> None:
    """Raise TestbedError, which says why, when a job has ended or Slurm ends it."""
    if ended := _look(job).ended:
        raise ended


def why_ended(by: str, environment: Mapping[str, str] = os.environ) -> TestbedError | None:
    """Return why Slurm ended this process with the signal `by`; None if it did not, or is silent.

    When a job ends, Slurm signals this process and its job steps in any order.
    """
    job = environment.get("SLURM_JOB_ID", "")
    if by != "SIGTERM" or not _JOB.fullmatch(job) or not shutil.which("squeue"):
        return None
    with suppress(TestbedError):
        return _look(job).ended
    return None


@dataclass(frozen=True)
class _Job:
    """What Slurm says of a job."""

    left: str
    nodes: str
    ended: TestbedError | None
    """Why it does not run; None while it does."""


def _look(job: str) -> _Job:
    # jobs that have ended, too: slurmctld knows them for MinJobAge, five minutes by default
    done = commands.ask(
        ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T|%r|%l|%L|%N")
    )
    words = (*done.stdout.strip().split("|", 4), "", "", "", "", "")
    state, reason, limit, left, nodes = words[:5]
    if not done.returncode and state == "RUNNING":
        return _Job(left, nodes, None)
    again = "Continue with `rocelab run --resume RUN` in a new allocation"
    if state == _TIME_OUT or reason == _TIME_LIMIT:
        why = TestbedError(
            f"Slurm's job {job} has ended: its time is over",
            cause=f"its time limit was {limit:.20}",
            action=f"{again} with a longer --time; `rocelab run --dry-run` says how long a plan "
            "takes.",
        )
    else:
        why = TestbedError(
            f"Slurm's job {job} has ended" + (f": it is {state!a:.40}" if state else ""),
            cause=done.stderr.strip()[-300:] or _CAUSES.get(state, "it was cancelled"),
            action=f"{again}.",
        )
    return _Job(left, nodes, why)


def _seconds(left: str) -> int | None:
    """Parse `[[days-]hours:]minutes:seconds`; None if there is no limit."""
    match = _LEFT.fullmatch(left)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _expand(listed: str) -> tuple[str, ...]:
    done = commands.ask(("scontrol", "show", "hostnames", listed))
    nodes = tuple(done.stdout.split())
    if done.returncode or not nodes or not all(map(_NODE.fullmatch, nodes)):
        raise TestbedError(
            f"cannot tell the nodes of {listed!a:.80}",
            cause=(done.stderr or done.stdout).strip()[-300:],
            action="See `scontrol show hostnames`.",
        )
    return nodes
