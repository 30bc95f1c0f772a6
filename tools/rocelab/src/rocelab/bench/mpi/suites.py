# SPDX-License-Identifier: GPL-2.0-or-later
"""The suites by name."""

from __future__ import annotations

from rocelab.bench.mpi.hpcc import HPCC
from rocelab.bench.mpi.imb import IMB
from rocelab.bench.mpi.mpibench import MPIBENCH
from rocelab.bench.mpi.npb import NPB
from rocelab.bench.mpi.omb import OMB
from rocelab.bench.mpi.skampi import SKAMPI
from rocelab.bench.mpi.suite import Suite

SUITES: dict[str, Suite] = {
    "mpibench": MPIBENCH,
    "omb": OMB,
    "imb": IMB,
    "skampi": SKAMPI,
    "npb": NPB,
    "hpcc": HPCC,
}
