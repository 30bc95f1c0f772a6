# SPDX-License-Identifier: GPL-2.0-or-later
"""Our own benchmarks, which no distribution has: hosts get them built, or build them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocelab.testbed import artifacts


@dataclass(frozen=True)
class OwnBenchmark:
    """A program whose sources are in `tools/NAME`."""

    name: str
    built: Callable[[str], Path]
    """What `make probes` has built for a kernel line. Raises MissingError."""
    condition: str
    """A shell's, true on hosts that can build it."""
    needs: str
    package: str
    """Which has what it needs."""

    @property
    def host_path(self) -> str:
        """Its path on a host."""
        return f"/usr/local/bin/{self.name}"

    @property
    def folder(self) -> str:
        """Its sources, from the top of the checkout."""
        return f"tools/{self.name}"


OWN_BENCHMARKS = (
    OwnBenchmark("mpibench", artifacts.mpibench, "command -v mpicc", "mpicc", "libopenmpi-dev"),
    OwnBenchmark(
        "pingpong",
        artifacts.pingpong,
        "[ -e /usr/include/infiniband/verbs.h ]",
        "verbs.h",
        "libibverbs-dev",
    ),
)
