# SPDX-License-Identifier: GPL-2.0-or-later
"""Spare machines that count instructions a benchmark's spins to time its clock (tools/perftest)."""

from __future__ import annotations

from rocelab import accelerators
from rocelab.plans.benchmarks.tool import Tool
from rocelab.testbed.node.prepare_node import PROBE_DIR

_LIBRARY = f"{PROBE_DIR}/quick_clock.so"
"""On a node; where it is missing, the loader warns, and the benchmark spins."""


def environment(tool: Tool, accelerator: accelerators.Name) -> tuple[str, ...]:
    """Return the variables of the tool's processes."""
    spins = tool.times_its_clock and accelerators.of(accelerator).counts_instructions
    return (f"LD_PRELOAD={_LIBRARY}",) if spins else ()
