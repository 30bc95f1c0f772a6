# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the files in a run folder, and their size limits (docs/formats/run.md)."""

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
TRACE = ".pcapng"
"""A node's trace has the node's name before this; rotated ones have a number after it."""

LARGEST_JSON = 64 << 20
LARGEST_OUTPUT = 256 << 20
"""Raw output of a benchmark: perftest writes a line for each sample."""
LARGEST_RESULTS = 1 << 30
MOST_ROWS = 1 << 25
"""Limit for results.parquet, which may be small and still unpack to any size."""


def step(size: int | None) -> str:
    """Return a step's folder within its cell's; None: one step for all sizes."""
    return "all" if size is None else str(size)


def trace(node: str) -> str:
    """Return the name of rxedump's trace at a node."""
    return f"{node}{TRACE}"


def is_trace(name: str) -> bool:
    """Return whether a file is a node's trace, or a rotated part of one."""
    return TRACE in name and not name.startswith(".")


def output(program: str) -> str:
    """Standard output of `client`, `server` or `mpirun`."""
    return f"{program}.out"


def errors(program: str) -> str:
    """Standard error of `client`, `server`, `mpirun` or `rxedump.<node>`."""
    return f"{program}.err"
