# SPDX-License-Identifier: GPL-2.0-or-later
"""Install driver and probes that this checkout has already built for a host's exact kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocelab import kernel_lines
from rocelab.errors import MissingError
from rocelab.testbed import artifacts
from rocelab.testbed.hosts.host_state import PROBES
from rocelab.testbed.hosts.own_benchmarks import OWN_BENCHMARKS
from rocelab.testbed.node import Node

_ABSENT = "=> not found"
# library: its package, which has one name in every Debian
_DEV = {
    "libmicrohttpd": "libmicrohttpd-dev",
    "libbpf": "libbpf-dev",
    "libelf": "libelf-dev",
    "libz": "zlib1g-dev",
}


@dataclass(frozen=True)
class Built:
    """What `make probes` has built for a kernel line."""

    driver: artifacts.Driver
    probes: tuple[Path, ...]
    benchmarks: tuple[Path, ...]
    """Those of `OWN_BENCHMARKS`, in that order."""


def find(release: str) -> Built | None:
    """Return what was built here for a kernel release, or None."""
    line = line_of(release)
    if not line:
        return None
    try:
        probes = tuple(artifacts.probe(Path(path).name, line) for path in PROBES)
        benchmarks = tuple(each.built(line) for each in OWN_BENCHMARKS)
        return Built(artifacts.driver(line), probes, benchmarks)
    except MissingError:
        return None


def line_of(release: str) -> str:
    """Return the kernel line whose driver was built here for a kernel release, or empty text."""
    for line in kernel_lines.LINES:
        try:
            if artifacts.driver(line).release == release:
                return line
        except MissingError:
            continue
    return ""


def send(node: Node, built: Built, work: str) -> None:
    """Copy the files into the folder `work` on the host.

    Raises MissingError if the host lacks a library that a probe was built with here.
    """
    for path in (built.driver.module, *built.probes, *built.benchmarks):
        node.put(path, f"{work}/{path.name}", mode=0o755)
    check_libraries(node, [f"{work}/{path.name}" for path in built.probes])


def check_libraries(node: Node, programs: Sequence[str]) -> None:
    """Raise MissingError if the host lacks a library that one of these programs needs."""
    # ldd(1) fails for a program that needs none
    output = node.run(("ldd", *programs), check=False).stdout
    lacking = sorted({line.split()[0] for line in output.splitlines() if line.endswith(_ABSENT)})
    if lacking:
        packages = " ".join(sorted({_DEV.get(name.partition(".")[0], name) for name in lacking}))
        raise MissingError(
            f"{node.name} lacks {', '.join(lacking)}",
            cause="the probes that were built on this machine need it",
            action=f"Run `apt-get install {packages}` on {node.name}.",
        )


def install(node: Node, built: Built, work: str) -> None:
    """Install the files as root, with the script that `make -C kernel install` uses."""
    root = node.root
    module = f"{work}/{built.driver.module.name}"
    script = f"{work}/kernel/scripts/install.sh"
    root.run(["sh", script, module, built.driver.release], timeout=300)
    for path, target in zip(built.probes, PROBES, strict=True):
        root.run(["install", "-m", "755", f"{work}/{path.name}", target])
    for path, own in zip(built.benchmarks, OWN_BENCHMARKS, strict=True):
        root.run(["install", "-D", "-m", "755", f"{work}/{path.name}", own.host_path])
