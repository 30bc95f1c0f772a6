# SPDX-License-Identifier: GPL-2.0-or-later
"""C programs of the tests for nodes, compiled here in the files of the nodes' image.

The compiler, headers and libraries are the node's own; on an emulated node the same takes seconds.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import vmlab
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node

FOLDER, _SHARED, _OUT = "/mnt", "/opt", "/srv"
"""Folders that every Debian has, in place of which the compiler sees ours; the source's first."""
_CHECK = Path(__file__).parents[2] / "tools/drivercheck"
"""Has the header that the verbs programs share."""


def remote(source: Path) -> str:
    """Where a program lies on a node that has it."""
    digest = hashlib.sha256(source.read_bytes())
    for header in sorted([*source.parent.glob("*.h"), *_CHECK.glob("*.h")]):
        digest.update(header.read_bytes())
    return f"/tmp/{source.stem}-{digest.hexdigest()[:16]}"


def compile_program(node: Node, source: Path, *options: str) -> str:
    """Return the path of the program on the node, which runs the kernel line of the tests."""
    program = remote(source)
    if node.run(["test", "-x", program], check=False).returncode:
        with tempfile.TemporaryDirectory(prefix="rocelab-test-") as folder:
            local = Path(folder) / source.stem
            local.write_bytes(_build(source, options))
            node.put(local, program, mode=0o755)
    return program


@cache
def _build(source: Path, options: tuple[str, ...]) -> bytes:
    root = artifacts.image(vmlab.LINE) / "root"
    with tempfile.TemporaryDirectory(prefix="rocelab-test-") as folder:
        argv = ["bwrap", "--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc"]
        argv += ["--tmpfs", "/tmp", "--ro-bind", str(source.parent), FOLDER]
        argv += [
            "--ro-bind",
            str(_CHECK),
            _SHARED,
            "--bind",
            folder,
            _OUT,
            "--unshare-net",
            "--unshare-pid",
            "--die-with-parent",
        ]
        argv += ["--clearenv", "--setenv", "PATH", "/usr/bin"]
        argv += [
            "gcc",
            "-O2",
            "-Wall",
            "-Werror",
            f"-I{_SHARED}",
            "-o",
            f"{_OUT}/program",
            f"{FOLDER}/{source.name}",
            *options,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return (Path(folder) / "program").read_bytes()
