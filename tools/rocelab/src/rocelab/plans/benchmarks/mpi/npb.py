# SPDX-License-Identifier: GPL-2.0-or-later
"""NAS Parallel Benchmarks 2.3 to 3.4 (MPI) as found on the nodes: command lines and output.

The output ends with a block of `name = value` lines, the same for all benchmarks and nearly the
same in all versions (print_results in common/). A program is one benchmark of one class. Up to 3.3
it is also compiled for one number of ranks.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks.mpi.suite import (
    MpiJob,
    Source,
    Suite,
    Sweep,
    bad_output,
    version_facts,
)
from rocelab.plans.benchmarks.tool import Argv, Value

CLASSES = "SWABCDEF"
_COMPLETED = re.compile(r"^[ \t]*+([A-Z]{2}) Benchmark Completed\.?[ \t]*+$", re.MULTILINE)
_FACT = re.compile(
    r"^[ \t]*+([A-Z][A-Za-z/ ]{1,20}?)[ \t]{0,40}=[ \t]*+(\S[^\n]{0,200})$", re.MULTILINE
)


def argv(job: MpiJob) -> Argv:
    """Return the command that each rank runs, by its name in NPB 3.4."""
    return (f"{job.test.name}.{job.mpi.problem}.x",)


def names(job: MpiJob) -> tuple[str, ...]:
    """Return the program's names: that of 3.4, then that of earlier versions."""
    return (*argv(job), f"{job.test.name}.{job.mpi.problem}.{job.mpi.ranks}")


def parse(job: MpiJob, stdout: str) -> Sweep:
    """Parse the time and rate of the benchmark. Raises CellError."""
    ends = list(_COMPLETED.finditer(stdout))
    if [end[1].lower() for end in ends] != [job.test.name]:
        bad_output(job, f"{len(ends)} blocks of results instead of one of {job.test.name}")
    facts = {name: value.rstrip() for name, value in _FACT.findall(stdout[ends[0].end() :])}
    expected = {
        "Class": job.mpi.problem,
        "Total processes": str(job.mpi.ranks),
        "Verification": "SUCCESSFUL",
    }
    for name, value in expected.items():
        if facts.get(name) != value:
            bad_output(job, f"its {name.lower()} is {facts.get(name)!a:.40}, not {value}")
    values = tuple(
        Value(metric, job.test.kind, number, unit)
        for metric, number, unit in (
            (metrics.Application("time").name, _number(job, facts, "Time in seconds") * 1e9, "ns"),
            (metrics.Application("rate").name, _number(job, facts, "Mop/s total") * 1e6, "1/s"),
        )
        if number > 0
    )
    if not values:
        bad_output(job, "its time is 0.00 s: choose a larger class")
    # the message volume depends on benchmark, class and ranks; none sends nothing
    return Sweep({0: values}, 0, 1, version_facts(facts.get("Version", ""), tested=r"[23]\."))


def _number(job: MpiJob, facts: dict[str, str], name: str) -> float:
    text = facts.get(name, "")
    if not re.fullmatch(r"\d{1,15}(\.\d{1,9})?", text, re.ASCII):
        bad_output(job, f"its {name.lower()} is {text!a:.40}")
    return float(text)


NPB = Suite(
    argv,
    parse,
    names=names,
    source=Source(
        "NAS Parallel Benchmarks",
        "Build them with the nodes' mpicc and mpif90 (`make cg CLASS=S` in NPB3.4-MPI) and put the "
        'programs of its bin/ into /usr/local/libexec/npb; or say tool = "hpcc", which Debian has.',
    ),
)
