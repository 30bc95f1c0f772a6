# SPDX-License-Identifier: GPL-2.0-or-later
"""A folder on a machine that nobody else can write or read, and whose name nobody can foresee."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rocelab.errors import TestbedError
from rocelab.testbed.node.interface import Node


@contextmanager
def private_folder(node: Node, purpose: str) -> Iterator[str]:
    """Make `rocelab-WHAT.XXXXXX` in the folder for temporary files, and remove it on exit.

    What a killed run leaves goes with its lease (lease.sh).
    """
    path = node.run(("mktemp", "-d", "-t", f"rocelab-{purpose}.XXXXXX")).stdout.strip()
    try:
        yield path
    finally:
        with suppress(TestbedError):  # a machine that does not answer is dead
            node.run(("rm", "-rf", path), check=False)
