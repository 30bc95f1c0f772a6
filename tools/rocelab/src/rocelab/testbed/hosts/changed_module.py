# SPDX-License-Identifier: GPL-2.0-or-later
"""Build a driver with patches on top of the series, or from another tree, on a host."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

from rocelab.directory import temporary_folder
from rocelab.errors import UsageError
from rocelab.testbed import changed_driver
from rocelab.testbed.hosts import host_build
from rocelab.testbed.node import Node

_LAST_LINES = 12


def build(
    node: Node,
    work: str,
    out: str,
    *,
    variant: str,
    patches: Sequence[Path] = (),
    tree: Path | None = None,
    commit: str = "",
) -> str:
    """Return the path of the module on the host, built for its running kernel in the folder `out`.

    `work` has what `host_build.send_sources` sends. Raises UsageError if the patches do not apply
    or the result does not compile.
    """
    words = [f"VARIANT={variant}"]
    node.run(["mkdir", "-p", f"{out}/patches"])
    files = changed_driver.files(patches)
    for number, file in enumerate(files, start=1):
        # make divides at blanks
        name = re.sub(r"[^A-Za-z0-9._-]", "_", file.name)
        node.put(file, f"{out}/patches/{number:04}-{name}")
    if files:
        words.append(f"EXTRA={out}/patches")
    if tree:
        _send_tree(node, tree, commit, out)
        words.append(f"RXE_SRC={out}/source")
    done = host_build.run_make(node, work, "kernel", *words, out=f"{out}/module")
    if done.returncode:
        lines = [text for text in done.stderr.splitlines() if not text.startswith("make")]
        raise UsageError(
            f"the driver cannot be built with this change on {node.name}",
            cause="\n".join(lines[-_LAST_LINES:]) or "make said nothing",
            action="Correct the patch or the tree, or see docs/compatibility.md for the kernels "
            "that work.",
        )
    return f"{out}/module/rdma_rxe.ko"


def _send_tree(node: Node, tree: Path, commit: str, out: str) -> None:
    source = changed_driver.Source.of(tree, commit)
    with temporary_folder() as folder:
        changed_driver.write_source(source, Path(folder) / "source")
        archive = Path(folder) / "tree.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(Path(folder) / "source", arcname="source")
        host_build.unpack(node, archive, out)
