# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host was like before it was prepared: taken there, kept there, put back from there."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from rocelab import artifacts
from rocelab.errors import TestbedError
from rocelab.node import Node
from rocelab.provider import tap

FOLDER = "/var/lib/rocelab"
"""On the host, root's alone: the record, and copies of files that were in the way."""
_RECORD = f"{FOLDER}/before.json"
_KEPT = f"{FOLDER}/files"
PROBES = tuple(f"/usr/local/sbin/{name}" for name in (*artifacts.PROBES, tap.TAP))
MPIBENCH = "/usr/local/bin/mpibench"
_DEVICE = re.compile(r"/sys/class/infiniband/([A-Za-z0-9_.-]{1,63})/parent:([A-Za-z0-9_.:-]{1,15})")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+~-]{0,63}")


@dataclass(frozen=True)
class Before:
    """A host's state, as far as preparing it changes it."""

    release: str
    """Kernel release that runs."""
    version: str | None
    """Of the rdma_rxe that is loaded: empty for the stock one; None when none is."""
    devices: tuple[tuple[str, str], ...]
    """rxe devices, and the interface of each."""
    files: tuple[str, ...]
    """Those of `touched` that are there."""

    def __post_init__(self) -> None:
        """Raise ValueError for a release that would lead out of /lib/modules."""
        if not _RELEASE.fullmatch(self.release):
            raise ValueError(f"strange kernel release {self.release!a:.60}")

    @property
    def touched(self) -> tuple[str, ...]:
        """Files that preparing writes."""
        return (f"/lib/modules/{self.release}/updates/rdma_rxe.ko", *PROBES, MPIBENCH)


def take(node: Node) -> Before:
    """Look at the host, now. Raises TestbedError when it does not answer."""
    release = node.run(["uname", "-r"]).stdout.strip()
    version = None
    if node.run(["test", "-d", "/sys/module/rdma_rxe"], check=False).returncode == 0:
        version = node.run(["cat", "/sys/module/rdma_rxe/version"], check=False).stdout.strip()
    try:
        bare = Before(release, version, (), ())
    except ValueError as error:
        raise TestbedError(f"{node.name} cannot be used: {error}") from error
    files = [
        path for path in bare.touched if node.run(["test", "-e", path], check=False).returncode == 0
    ]
    return Before(release, version, _devices(node), tuple(files))


def _devices(node: Node) -> tuple[tuple[str, str], ...]:
    """rxe alone has the attribute `parent`."""
    listing = node.run(
        ["sh", "-c", "grep -Hs '' /sys/class/infiniband/*/parent"], check=False
    ).stdout
    found = (_DEVICE.fullmatch(line) for line in listing.splitlines())
    return tuple(sorted((match[1], match[2]) for match in found if match))


def kept(node: Node) -> Before | None:
    """What the host was like before it was prepared; None when it was not."""
    found = node.root.run(["cat", _RECORD], check=False)
    if found.returncode:
        return None
    try:
        values = json.loads(found.stdout)
        devices = tuple((str(name), str(netdev)) for name, netdev in values["devices"])
        version = values["version"]
        before = Before(
            str(values["release"]),
            None if version is None else str(version),
            devices,
            tuple(str(path) for path in values["files"]),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise TestbedError(
            f"{_RECORD} on {node.name} cannot be read: {error!a:.80}",
            cause="somebody changed it",
            action=f"put the host back by hand: make -C kernel uninstall, and remove {FOLDER}",
        ) from error
    return before


def keep(node: Node, before: Before) -> None:
    """Write the record, and copies of the files that will be overwritten."""
    root = node.root
    root.run(["install", "-d", "-m", "700", FOLDER, _KEPT])
    for path in before.files:
        root.run(["cp", "-a", "--parents", path, _KEPT])
    # the last to be written: without it nothing was prepared
    root.run(["tee", _RECORD], stdin=json.dumps(asdict(before)) + "\n")


def put_back(node: Node, before: Before) -> None:
    """The files as they were."""
    root = node.root
    for path in before.touched:
        if path in before.files:
            root.run(["cp", "-a", f"{_KEPT}{path}", path])
        else:
            root.run(["rm", "-f", path])


def forget(node: Node) -> None:
    """Remove the record: the host is as it was."""
    node.root.run(["rm", "-rf", FOLDER])
