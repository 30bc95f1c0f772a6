# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the instrumented driver and the probes on a host, for its own kernel, and load them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from rocelab.errors import MissingError, TestbedError
from rocelab.testbed import lease
from rocelab.testbed.hosts import driver_exchange, host_state, prebuilt, source_archive
from rocelab.testbed.node import Node

Say = Callable[[str], None]
_BUILD_TIMEOUT = 1800
# program: its Debian package
_TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "clang": "clang",
    "bpftool": "bpftool",
    "pahole": "dwarves",
    "patch": "patch",
    "xz": "xz-utils",
    "rdma": "iproute2",
}
_PRINT_MISSING = 'for name in "$@"; do command -v "$name" >/dev/null || echo "$name"; done'
# sbin is not on every user's PATH
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def prepare(node: Node, say: Say) -> None:
    """Prepare one host, or update the driver and the probes on a prepared one.

    They are built on the host, as the user, in a temporary folder, unless this checkout has built
    them for the host's exact kernel. They are installed as root, after the host's state was saved.
    Raises MissingError when the host lacks a tool, TestbedError when a build fails or the loaded
    driver is in use.
    """
    install(node, say)
    version = host_state.read(node).version
    if not version:
        raise TestbedError(
            f"{node.name} still runs its stock rdma_rxe",
            cause="modprobe prefers another module to ours",
            action=f"On {node.name}: look at `modinfo -n rdma_rxe`.",
        )
    say(f"{node.name}: {version}, probes in /usr/local/sbin")


def install(node: Node, say: Say) -> None:
    """Save the host's state, install driver and probes, and load the driver; see `prepare`."""
    has_mpi = False
    built = prebuilt.find(node.run(["uname", "-r"]).stdout.strip())
    if built is None:
        _check_tools(node)
    work = node.run(["mktemp", "-d", "-t", "rocelab-XXXXXX"]).stdout.strip()
    try:
        # if this process is killed: some of the files belong to root
        lease.at_end(node, ("rm", "-rf", "--", work))
        _send(node, work)
        if built is None:
            say(f"{node.name}: building driver and probes for its kernel")
            _make(node, work, "kernel")
            _make(node, work, "ebpf")
            has_mpi = _has_mpi(node, say)
            if has_mpi:
                _make(node, work, "tools/mpibench")
        else:
            say(f"{node.name}: using driver and probes built here for {built.driver.release}")
            prebuilt.send(node, built, work)
        if host_state.saved(node) is None:
            host_state.save(node, host_state.read(node))
        devices = driver_exchange.unload(node)
        try:
            if built is None:
                _make(node.root, work, "kernel", "install")
                _make(node.root, work, "ebpf", "install")
                if has_mpi:
                    _make(node.root, work, "tools/mpibench", "install")
            else:
                prebuilt.install(node, built, work)
        finally:
            driver_exchange.load(node, devices)
    finally:
        # some of the files belong to root
        node.root.run(["rm", "-rf", "--", work], check=False)


def _check_tools(node: Node) -> None:
    argv = ["env", _PATH, "sh", "-c", _PRINT_MISSING, "sh", *_TOOLS]
    missing = [name for name in node.run(argv).stdout.split() if name in _TOOLS]
    if missing:
        packages = " ".join(_TOOLS[name] for name in missing)
        raise MissingError(
            f"{node.name} lacks {', '.join(missing)}",
            cause="driver and probes are built on the host, for its kernel",
            action=f"Run `apt-get install {packages}` on {node.name}.",
        )


def _has_mpi(node: Node, say: Say) -> bool:
    """Return whether mpibench can be built on the host; only MPI benchmarks need it."""
    found = node.run(["env", _PATH, "sh", "-c", "command -v mpicc"], check=False).returncode == 0
    if not found:
        say(
            f"{node.name}: no mpicc, so mpibench is not built; "
            "to run it: apt-get install libopenmpi-dev, then prepare the host again"
        )
    return found


def _send(node: Node, work: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "source.tar.gz"
        source_archive.pack(archive)
        node.put(archive, f"{work}/source.tar.gz")
    node.run(["tar", "-xzf", f"{work}/source.tar.gz", "-C", work, "--no-same-owner"])


def _make(node: Node, work: str, folder: str, *targets: str) -> None:
    argv = [
        *("env", _PATH, "make", "--no-print-directory", "-C", f"{work}/{folder}"),
        *(f"O={work}/build/{folder}", *targets),
    ]
    done = node.run(argv, timeout=_BUILD_TIMEOUT, check=False)
    if done.returncode:
        raise TestbedError(
            f"`make -C {folder}{''.join(f' {word}' for word in targets)}` failed on {node.name}",
            cause=(done.stderr or done.stdout).strip()[-1500:],
            action="See docs/compatibility.md for the kernels and distributions that work.",
        )
