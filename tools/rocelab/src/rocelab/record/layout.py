# SPDX-License-Identifier: GPL-2.0-or-later
"""What the files of a run folder are called, (docs/formats/run.md)."""

from __future__ import annotations

RUN_SCHEMA = "rocelab.run/1"
CELL_SCHEMA = "rocelab.cell/1"

RUN = "run.json"
CELLS = "cells"
CELL = "cell.json"
RESULTS = "results.parquet"
REPORT = "report.html"
FIGURES = "figures"

WIRE_CAPTURE = "wire.pcap"
FAULTS = "faults.json"
TRACE = ".pcapng"
"""A node's trace is named after it; rotated ones have a number after this."""


TIMING = "timing"
"""In a step's folder: the pass that no probe watched."""
HALF = "half"
"""The same with half of the messages."""
EIGHTH = "eighth"
"""The same with an eighth of the messages."""
EIGHTH_WATCHED = "eighth-watched"
"""An eighth of the messages, watched by the probes."""
PARTS = {HALF: 2, EIGHTH: 8, EIGHTH_WATCHED: 8}
"""By what the number of messages is divided in these."""
PASSES = (HALF, EIGHTH, TIMING, EIGHTH_WATCHED)
"""All passes that a step may have before its own.

The first one finds the caches cold, and `HALF` only checks the line through the others.
"""


def step(size: int | None) -> str:
    """A step's folder in its cell's; None: one step for all sizes."""
    return "all" if size is None else str(size)


def trace(node: str) -> str:
    """What rxedump recorded at a node."""
    return f"{node}{TRACE}"


def is_trace(name: str) -> bool:
    """Say whether a file is a node's trace, or a rotated part of one."""
    return TRACE in name and not name.startswith(".")


def events(node: str) -> str:
    """What the driver's tracepoints at a node said of a step with faults."""
    return f"events.{node}.txt"


def output(program: str) -> str:
    """Standard output of `client`, `server` or `mpirun`."""
    return f"{program}.out"


def errors(program: str) -> str:
    """Standard error of `client`, `server`, `mpirun` or `rxedump.<node>`."""
    return f"{program}.err"
