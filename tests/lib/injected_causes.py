# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated captures of one connection with one cause of delay injected, two, or none."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus import CAPTURES
from requirements import need_program

MANIFEST = CAPTURES.parent / "tools/rocelab/Cargo.toml"
BATCH = 500


@dataclass
class Injected:
    """A capture, and what the causes in it cost, ns."""

    seed: int
    path: Path
    costs: dict[str, int]


def simulate(count: int) -> Iterator[Injected]:
    """Simulate captures; a third of them is clean."""
    need_program("cargo")
    run = ["cargo", "run", "-q", "--release", "--manifest-path", str(MANIFEST), "-p",
           "rc-simulator", "--example", "injected", "--"]  # fmt: skip
    for first in range(0, count, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            words = [*run, folder, str(first), str(min(BATCH, count - first))]
            text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            for line in text.splitlines():
                seed, *causes = line.split()
                costs: Counter[str] = Counter()
                for cause in causes:
                    name, _, ns = cause.partition("=")
                    costs[name] += int(ns)
                yield Injected(int(seed), Path(folder) / f"{seed}.pcap", costs)
