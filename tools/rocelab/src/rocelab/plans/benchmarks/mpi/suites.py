# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI suites by name."""

from __future__ import annotations

from rocelab.plans.benchmarks.mpi.hpcc import HPCC
from rocelab.plans.benchmarks.mpi.imb import IMB
from rocelab.plans.benchmarks.mpi.mpibench import MPIBENCH
from rocelab.plans.benchmarks.mpi.npb import NPB
from rocelab.plans.benchmarks.mpi.omb import OMB
from rocelab.plans.benchmarks.mpi.skampi import SKAMPI
from rocelab.plans.benchmarks.mpi.suite import Suite

SUITES: dict[str, Suite] = {
    "mpibench": MPIBENCH,
    "omb": OMB,
    "imb": IMB,
    "skampi": SKAMPI,
    "npb": NPB,
    "hpcc": HPCC,
}
