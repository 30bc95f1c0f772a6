# SPDX-License-Identifier: GPL-2.0-or-later
"""Build on a host, for its own kernel, as the user, in a temporary folder."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rocelab.directory import temporary_folder
from rocelab.errors import MissingError, TestbedError
from rocelab.testbed import artifacts, lease
from rocelab.testbed.hosts.own_benchmarks import OWN_BENCHMARKS
from rocelab.testbed.node import Completed, Node

_BUILD_TIMEOUT = 1800
_PRINT_MISSING = 'for name in "$@"; do command -v "$name" >/dev/null || echo "$name"; done'
# sbin is not on every user's PATH
SBIN = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""For env(1): all programs of the system."""
MODULE_TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "pahole": "dwarves",
    "patch": "patch",
    "xz": "xz-utils",
}
"""Programs that build the driver, and their Debian packages."""
_FOLDERS = ("kernel", "ebpf", "tables", *(each.folder for each in OWN_BENCHMARKS))
# what their Makefiles share, and where the build reads the version
_FILES = ("tools/own_benchmark.mk", "tools/rocelab/pyproject.toml")


@contextmanager
def work_folder(node: Node) -> Iterator[str]:
    """Make a temporary folder; it goes with the context, or with the lease."""
    work = node.run(["mktemp", "-d", "-t", "rocelab-XXXXXX"]).stdout.strip()
    try:
        # if this process is killed: some of the files may belong to root
        lease.at_end(node, ("rm", "-rf", "--", work))
        yield work
    finally:
        node.root.run(["rm", "-rf", "--", work], check=False)


def check_tools(node: Node, tools: Mapping[str, str]) -> None:
    """Raise MissingError unless the host has these programs; `tools` has their packages."""
    argv = ["env", SBIN, "sh", "-c", _PRINT_MISSING, "sh", *tools]
    missing = [name for name in node.run(argv).stdout.split() if name in tools]
    if missing:
        packages = " ".join(tools[name] for name in missing)
        raise MissingError(
            f"{node.name} lacks {', '.join(missing)}",
            cause="what was not built here is built on the host, for its kernel",
            action=f"Run `apt-get install {packages}` on {node.name}.",
        )


def pack_sources(archive: Path) -> None:
    """Write the archive, without the user's IDs. Raises MissingError without the sources."""
    source = artifacts.source_dir()
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        for name in (*_FOLDERS, *_FILES):
            tar.add(source / name, arcname=name, filter=_anonymous)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (info.isfile() or info.isdir()):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def send_sources(node: Node, work: str) -> None:
    """Unpack the sources of driver and probes in the folder `work`."""
    with temporary_folder() as folder:
        archive = Path(folder) / "source.tar.gz"
        pack_sources(archive)
        unpack(node, archive, work)


def unpack(node: Node, archive: Path, folder: str) -> None:
    """Unpack a tar file in a folder of the host."""
    node.put(archive, f"{folder}/{archive.name}")
    node.run(["tar", "-xzf", f"{folder}/{archive.name}", "-C", folder, "--no-same-owner"])


def run_make(node: Node, work: str, folder: str, *words: str, out: str = "") -> Completed:
    """Run make in one of the folders of `send_sources`, and return how it ended.

    It builds into `out`, by default a separate folder in `work`.
    """
    argv = [
        *("env", SBIN, "make", "--no-print-directory", "-C", f"{work}/{folder}"),
        *(f"O={out or f'{work}/build/{folder}'}", *words),
    ]
    return node.run(argv, timeout=_BUILD_TIMEOUT, check=False)


def make(node: Node, work: str, folder: str, *targets: str) -> None:
    """Run make in one of the folders of `send_sources`. Raises TestbedError if it fails."""
    done = run_make(node, work, folder, *targets)
    if done.returncode:
        raise TestbedError(
            f"`make -C {folder}{''.join(f' {word}' for word in targets)}` failed on {node.name}",
            cause=(done.stderr or done.stdout).strip()[-1500:],
            action="See docs/compatibility.md for the kernels and distributions that work.",
        )
