# SPDX-License-Identifier: GPL-2.0-or-later
"""How much rocelab takes from files and nodes that may be hostile: the page of all such limits.

SECURITY.md has them as a table (`page`). What a command of the user may ask for is limited where
its option is.
"""

from __future__ import annotations

MAX_NODES, MAX_SWITCHES = 8, 8
MIN_MTU, MAX_MTU = 1280, 9000
"""Bytes. IPv6, and therefore link-local GIDs, needs at least 1280."""
MAX_REPETITIONS = 99
"""Names of cells have two digits for the repetition."""
MAX_RATE_MBIT, MAX_DELAY_US, MAX_LOSS_PPM = 400_000, 1_000_000, 500_000
"""Of a shaped link."""
MAX_TOML_BYTES = 1 << 20
MAX_TOML_WORK = 250_000
"""The squares of the dots in each line, summed: tomllib keeps each prefix of a dotted key, and
files that people write stay below a hundredth of this."""
MAX_ITEMS = 1000
"""Of a list in TOML, and of the tables of one name."""
MAX_CELLS = 10_000
"""Of a plan and of a run folder: the largest study has 600."""
MAX_JSON_BYTES = 64 << 20
MAX_JSON_VALUES = 2_000_000
"""A value takes some 100 bytes of memory, however short its text is."""
MAX_JSON_DEPTH = 64
"""What rocelab and its probes write has ten levels at most."""
MAX_RAW_BYTES = 256 << 20
"""Of a benchmark's raw output: perftest writes a line for each sample."""
MAX_RESULTS_BYTES = 256 << 20
MAX_ROWS = 1 << 21
"""Of results.parquet, which can be short and still unpack to anything. A row takes 150 bytes of
memory; a cell has some 750."""
MAX_NAME_BYTES = 4096
"""Of a text in results.parquet, where millions of rows may share one."""
MAX_STACKS_BYTES = 64 << 20
MAX_PRINTED_BYTES = 256 << 20
"""What a command on a node may print, on each of its streams."""
MAX_FILE_BYTES = 4 << 30
"""Of a file that comes from a node, unless the caller says less."""


def _mib(size: int) -> str:
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"


def page() -> str:
    """Return the table of limits as SECURITY.md has it."""
    rows = (
        ("plan, inventory", f"{_mib(MAX_TOML_BYTES)}, {MAX_ITEMS} items in a list"),
        ("plan, run folder", f"{MAX_CELLS} cells"),
        (
            "JSON",
            f"{_mib(MAX_JSON_BYTES)}, {MAX_JSON_VALUES} values, {MAX_JSON_DEPTH} levels",
        ),
        (
            "results.parquet",
            f"{_mib(MAX_RESULTS_BYTES)}, {MAX_ROWS} rows, {MAX_NAME_BYTES} bytes a text",
        ),
        ("raw output", _mib(MAX_RAW_BYTES)),
        ("stacks", _mib(MAX_STACKS_BYTES)),
        ("a node's command", f"{_mib(MAX_PRINTED_BYTES)} on each stream"),
        ("a node's file", _mib(MAX_FILE_BYTES)),
    )
    return "\n".join(
        ("| of | at most |", "|---|---|", *(f"| {subject} | {most} |" for subject, most in rows))
    )
