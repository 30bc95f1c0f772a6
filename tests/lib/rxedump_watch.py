# SPDX-License-Identifier: GPL-2.0-or-later
"""rxedump on a node, for tests: run it around something, and look into its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pcapng_file import Capture, read_pcapng
from rocelab import stage_table
from rocelab.testbed.node import Completed, Node

HOLD = ("--hold", "600000")
"""Long enough that a slow emulated node writes no packet without its last stages."""
TX_STAGES = list(stage_table.TX)
RX_STAGES = list(stage_table.RX)


class Dump:
    """rxedump on a node, writing to a file there."""

    def __init__(self, node: Node, *options: str, label: str = "dump") -> None:
        self.node = node
        self.path = f"/tmp/{label}.pcapng"
        node.run(["sh", "-c", f"rm -f {self.path}*"])
        command = ["rxedump", "--node", node.name, "-w", self.path, *HOLD, *options]
        self.process = node.start(command)

    def wait_ready(self) -> None:
        """It records from here on."""
        self.process.wait_for_line("rxedump: ready", timeout=180)

    def end(self) -> Completed:
        """Interrupt it, and wait; it succeeds."""
        self.process.interrupt()
        done = self.process.wait(timeout=120)
        assert done.returncode == 0, done.stderr
        return done

    def fetch(self, folder: Path, suffix: str = "") -> Path:
        """Copy the file here."""
        local = folder / f"{self.node.name}-{Path(self.path).name}{suffix}"
        self.node.get(self.path + suffix, local)
        return local

    def stop(self, folder: Path) -> Capture:
        """End it; returns what it wrote."""
        self.end()
        return read_pcapng(self.fetch(folder))


@contextmanager
def _ready(dumps: Sequence[Dump]) -> Iterator[None]:
    try:
        for dump in dumps:
            dump.wait_ready()
        yield
    finally:
        for dump in dumps:
            dump.process.kill()


@contextmanager
def dumping(*nodes: Node, options: tuple[str, ...] = ()) -> Iterator[list[Dump]]:
    """rxedump on every node while the context lasts; the caller stops them."""
    dumps = [Dump(node, *options) for node in nodes]
    with _ready(dumps):
        yield dumps


@contextmanager
def dumping_apart(node: Node, options: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, Dump]]:
    """Run several on one node, by label, each with its own options."""
    dumps = {label: Dump(node, *chosen, label=label) for label, chosen in options.items()}
    with _ready(list(dumps.values())):
        yield dumps
