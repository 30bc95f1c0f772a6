# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the instrumented driver and the probes on a host, for its own kernel, and load them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from rocelab.errors import MissingError, TestbedError
from rocelab.hosts import before, built, driver, source
from rocelab.node import Node

Say = Callable[[str], None]
_BUILDS_WITHIN = 1800
# program → Debian's package
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
_WHICH_ARE_MISSING = 'for name in "$@"; do command -v "$name" >/dev/null || echo "$name"; done'
# sbin is not on every user's path
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def prepare(node: Node, say: Say) -> None:
    """Prepare one host; one that is prepared gets today's driver and probes.

    They are built on the host, as the user, in a folder that is gone afterwards, unless this
    checkout holds what was built for that very kernel; and installed as root. What was there is
    kept first. Raises MissingError when the host lacks a tool, TestbedError when a build fails or
    the loaded driver is in use.
    """
    has_mpi = False
    ours = built.find(node.run(["uname", "-r"]).stdout.strip())
    if ours is None:
        _check_tools(node)
    work = node.run(["mktemp", "-d", "-t", "rocelab-XXXXXX"]).stdout.strip()
    try:
        _send(node, work)
        if ours is None:
            say(f"{node.name}: building driver and probes for its kernel")
            _make(node, work, "kernel")
            _make(node, work, "ebpf")
            has_mpi = _has_mpi(node, say)
            if has_mpi:
                _make(node, work, "tools/mpibench")
        else:
            say(f"{node.name}: its kernel is {ours.driver.release}, for which they are built here")
            built.send(node, ours, work)
        if before.kept(node) is None:
            before.keep(node, before.take(node))
        devices = driver.unload(node)
        try:
            if ours is None:
                _make(node.root, work, "kernel", "install")
                _make(node.root, work, "ebpf", "install")
                if has_mpi:
                    _make(node.root, work, "tools/mpibench", "install")
            else:
                built.install(node, ours, work)
        finally:
            driver.load(node, devices)
        version = before.take(node).version
        if not version:
            raise TestbedError(
                f"{node.name} still runs its stock rdma_rxe",
                cause="another module comes before ours",
                action="see `modinfo -n rdma_rxe` there",
            )
        say(f"{node.name}: {version}, probes in /usr/local/sbin")
    finally:
        # root's files are among them
        node.root.run(["rm", "-rf", "--", work], check=False)


def _check_tools(node: Node) -> None:
    argv = ["env", _PATH, "sh", "-c", _WHICH_ARE_MISSING, "sh", *_TOOLS]
    missing = [name for name in node.run(argv).stdout.split() if name in _TOOLS]
    if missing:
        packages = " ".join(_TOOLS[name] for name in missing)
        raise MissingError(
            f"{node.name} lacks {', '.join(missing)}",
            cause="driver and probes are built on the host, for its own kernel",
            action=f"there: apt-get install {packages}",
        )


def _has_mpi(node: Node, say: Say) -> bool:
    """Whether mpibench can be built there; the rest does without."""
    there = node.run(["env", _PATH, "sh", "-c", "command -v mpicc"], check=False).returncode == 0
    if not there:
        say(f"{node.name}: no mpicc, so no mpibench; for MPI: apt-get install libopenmpi-dev")
    return there


def _send(node: Node, work: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "source.tar.gz"
        source.pack(archive)
        node.put(archive, f"{work}/source.tar.gz")
    node.run(["tar", "-xzf", f"{work}/source.tar.gz", "-C", work, "--no-same-owner"])


def _make(node: Node, work: str, room: str, *targets: str) -> None:
    argv = [
        *("env", _PATH, "make", "--no-print-directory", "-C", f"{work}/{room}"),
        *(f"O={work}/build/{room}", *targets),
    ]
    done = node.run(argv, timeout=_BUILDS_WITHIN, check=False)
    if done.returncode:
        raise TestbedError(
            f"`make -C {room}{''.join(f' {word}' for word in targets)}` failed on {node.name}",
            cause=(done.stderr or done.stdout).strip()[-1500:],
        )
