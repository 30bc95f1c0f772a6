# SPDX-License-Identifier: GPL-2.0-or-later
"""Which parts of a plan need root on SSH hosts."""

from __future__ import annotations

from rocelab import units
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.catalog import Probe
from rocelab.plans.plan import Plan


def root_needs(plan: Plan) -> str:
    """Name what needs root, for an error message; empty if a plain user can run the plan.

    A capture needs root, too, but the proof can do without one.
    """
    cells = plan.cells()
    needs = dict.fromkeys(cell.transport.name for cell in cells if cell.transport.is_rxe)
    # of the probes only rxecpu looks at a cell without rxe
    needs |= dict.fromkeys(str(p) for p in plan.probes if needs or p == Probe.RXECPU)
    needs |= {
        f"{cell.benchmark.tool}'s server": None
        for cell in cells
        if cell.benchmark.mpi is None and TOOLS[cell.test.tool].serves_as_root
    }
    if plan.testbed.link.is_shaped:
        needs["the shaped link"] = None
    return units.listing(list(needs))
