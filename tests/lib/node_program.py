# SPDX-License-Identifier: GPL-2.0-or-later
"""C programs of the tests, compiled on a node when their source has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rocelab.testbed.node import Node


def remote(source: Path) -> str:
    """Where a program lies on a node that has it."""
    return f"/tmp/{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"


def compiled(node: Node, source: Path, *options: str) -> str:
    """Path of the program on the node."""
    program = remote(source)
    if node.run(["test", "-x", program], check=False).returncode:
        node.put(source, f"{program}.c")
        node.run(["gcc", "-O2", "-o", program, f"{program}.c", *options], timeout=120)
    return program
