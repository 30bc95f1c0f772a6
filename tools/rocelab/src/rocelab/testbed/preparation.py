# SPDX-License-Identifier: GPL-2.0-or-later
"""What is put on virtual machines once, after they have booted: it is in their snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rocelab.plans.catalog import PROBE_PROGRAMS
from rocelab.testbed import artifacts
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.node import Node, prepare_node
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.prepare_node import install_probes, prepare


@dataclass(frozen=True)
class Payload:
    """A driver, with a device on each node, and programs; either may be missing."""

    driver: Driver | None
    programs: tuple[Path, ...]

    @classmethod
    def of_line(cls, line: str) -> Self:
        """Return all that a run needs, built for a kernel line. Raises MissingError."""
        artifacts.image(line)  # without it, that is what to build first
        return cls(artifacts.driver(line), tuple(artifacts.programs(line)))

    @property
    def text(self) -> str:
        """What it is, for people."""
        probes = [path.name for path in self.programs if path.name in PROBE_PROGRAMS]
        driver = self.driver
        named = f"driver {driver.patch_id}" if driver and driver.patch_id else "stock driver"
        return ", ".join(([named] if driver else []) + probes) or "no driver, no probes"

    def install(self, nodes: Sequence[Node]) -> None:
        """Put it on nodes. Raises TestbedError."""
        if self.driver:
            prepare(nodes, self.driver, self.programs)
            return
        for machine in machines(nodes):
            install_probes(machine, self.programs)

    def contents(self) -> Iterable[bytes]:
        """Yield what decides what it makes of a machine."""
        for path in ([self.driver.module] if self.driver else []) + list(self.programs):
            yield path.name.encode()
            yield path.read_bytes()


@dataclass(frozen=True)
class Preparation:
    """Something that is done to the machines of a testbed, and the hash of what decides it."""

    text: str
    digest: str
    apply: Callable[[Sequence[Node]], None]


def of_nodes(payload: Payload) -> Preparation:
    """Return the preparation of machines that are one node each."""
    return Preparation(payload.text, digest(payload.contents()), payload.install)


def digest(contents: Iterable[bytes]) -> str:
    """Return the hash of all of this, and of the code that installs it."""
    sha = hashlib.sha256(Path(prepare_node.__file__).read_bytes())
    for content in contents:
        sha.update(hashlib.sha256(content).digest())
    return sha.hexdigest()
