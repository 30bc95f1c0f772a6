# SPDX-License-Identifier: GPL-2.0-or-later
"""pingpong with more work of a known size: for each message, and once at its start."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import node_program
from rocelab.testbed.node import Node

SOURCES = Path(__file__).parents[2] / "tools/pingpong"
_PROGRAM = "/usr/local/bin/pingpong"


def write(folder: Path, burn: str, message: int | str, start: int | str) -> Path:
    """Write its sources with these arguments of `burn`, a function in C; return main.c."""
    shutil.copytree(SOURCES, folder)
    main = folder / "main.c"
    text = main.read_text()
    for before, after in (
        ("static bool send_one(", f"{burn}static bool send_one("),
        ("\treturn carrier->send();", f"\tburn({message});\n\treturn carrier->send();"),
        ("\tif (status)\n", f"\tburn({start});\n\tif (status)\n"),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    main.write_text(text)
    return main


def install(nodes: Sequence[Node], source: Path) -> None:
    """Let this be the nodes' pingpong."""
    others = [f"{node_program.FOLDER}/{name}.c" for name in ("settings", "tcp", "verbs")]
    for node in nodes:
        version = '-DBENCHMARK_VERSION="changed"'
        program = node_program.compile_program(node, source, version, *others, "-libverbs")
        node.run(["install", program, _PROGRAM])
