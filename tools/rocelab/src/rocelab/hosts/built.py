# SPDX-License-Identifier: GPL-2.0-or-later
"""Driver and probes that this checkout has built already for the very kernel of a host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocelab import artifacts
from rocelab.errors import MissingError
from rocelab.hosts.before import MPIBENCH, PROBES
from rocelab.node import Node


@dataclass(frozen=True)
class Built:
    """What `make probes` made for a kernel line."""

    driver: artifacts.Driver
    probes: tuple[Path, ...]
    mpibench: Path


def find(release: str) -> Built | None:
    """What was built here for a kernel release, or None."""
    for line in artifacts.LINES:
        try:
            driver = artifacts.driver(line)
            probes = tuple(artifacts.probe(Path(path).name, line) for path in PROBES)
            mpibench = artifacts.mpibench(line)
        except MissingError:
            continue
        if driver.release == release:
            return Built(driver, probes, mpibench)
    return None


def send(node: Node, ours: Built, work: str) -> None:
    """Copy it into the folder `work` on the host."""
    for path in (ours.driver.module, *ours.probes, ours.mpibench):
        node.put(path, f"{work}/{path.name}", mode=0o755)


def install(node: Node, ours: Built, work: str) -> None:
    """Install it from there, by the script that `make -C kernel install` runs. As root."""
    root = node.root
    module = f"{work}/{ours.driver.module.name}"
    script = f"{work}/kernel/scripts/install.sh"
    root.run(["sh", script, module, ours.driver.release], timeout=300)
    for path, there in zip(ours.probes, PROBES, strict=True):
        root.run(["install", "-m", "755", f"{work}/{path.name}", there])
    root.run(["install", "-D", "-m", "755", f"{work}/{ours.mpibench.name}", MPIBENCH])
