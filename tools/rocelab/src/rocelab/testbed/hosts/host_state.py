# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of a host before it was prepared: recorded on the host, and restored from there."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath

from rocelab import json_text
from rocelab.errors import TestbedError
from rocelab.plans.catalog import PROBE_PROGRAMS
from rocelab.testbed import linktap
from rocelab.testbed.hosts.own_benchmarks import OWN_BENCHMARKS
from rocelab.testbed.node import Node

FOLDER = "/var/lib/rocelab"
"""On the host, readable by root only: the record, and copies of the files we overwrite."""
_RECORD = f"{FOLDER}/before.json"
_COPIES = f"{FOLDER}/files"
PROBES = tuple(f"/usr/local/sbin/{name}" for name in (*PROBE_PROGRAMS, linktap.TAP))
_DEVICE = re.compile(r"/sys/class/infiniband/([A-Za-z0-9_.-]{1,63})/parent:([A-Za-z0-9_.:-]{1,15})")
_VERSION = "version "
# one command: each costs a round trip, and a job step where Slurm has the nodes. Only rxe devices
# have the attribute `parent`.
_LOADED = f"""
uname -r
cd /sys/module/rdma_rxe 2>/dev/null && echo "{_VERSION}$(cat version 2>/dev/null)" || echo absent
grep -Hs '' /sys/class/infiniband/*/parent
true
"""
_EXISTING = 'for each; do [ ! -e "$each" ] || echo "$each"; done'
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+~-]{0,63}")


@dataclass(frozen=True)
class HostState:
    """The part of a host's state that preparing it changes."""

    release: str
    """The running kernel release."""
    version: str | None
    """Version of the loaded rdma_rxe: empty for the stock driver, None if none is loaded."""
    devices: tuple[tuple[str, str], ...]
    """rxe devices, and the interface of each."""
    files: tuple[str, ...]
    """Those of `touched` that exist."""

    def __post_init__(self) -> None:
        """Raise ValueError for a release that would point outside /lib/modules."""
        if not _RELEASE.fullmatch(self.release):
            raise ValueError(f"strange kernel release {self.release!a:.60}")

    @property
    def touched(self) -> tuple[str, ...]:
        """The files that preparing a host writes."""
        benchmarks = (each.host_path for each in OWN_BENCHMARKS)
        return (f"/lib/modules/{self.release}/updates/rdma_rxe.ko", *PROBES, *benchmarks)


def read(node: Node) -> HostState:
    """Read the host's current state. Raises TestbedError when it does not answer."""
    bare = read_loaded(node)
    there = node.run(["sh", "-c", _EXISTING, "sh", *bare.touched]).stdout.splitlines()
    return replace(bare, files=tuple(path for path in bare.touched if path in there))


def read_loaded(node: Node) -> HostState:
    """Read what is loaded, without the files. Raises TestbedError as `read`."""
    release, _, rest = node.run(["sh", "-c", _LOADED]).stdout.partition("\n")
    driver, _, listing = rest.partition("\n")
    version = driver.removeprefix(_VERSION).strip() if driver.startswith(_VERSION) else None
    matches = (_DEVICE.fullmatch(line) for line in listing.splitlines())
    devices = tuple(sorted((match[1], match[2]) for match in matches if match))
    try:
        return HostState(release, version, devices, ())
    except ValueError as error:
        raise TestbedError(
            f"cannot use {node.name}: {error}",
            cause="it becomes part of a path, so only letters, digits and -_.+~ are accepted",
            action=f"On {node.name}: look at `uname -r`.",
        ) from error


def read_saved(node: Node) -> HostState | None:
    """Return the host's state before it was prepared; None if it is not prepared."""
    done = node.root.run(["cat", _RECORD], check=False)
    if done.returncode:
        return None
    try:
        values = json_text.parse_any(done.stdout)
        devices = tuple((str(name), str(netdev)) for name, netdev in values["devices"])
        version = values["version"]
        before = HostState(
            str(values["release"]),
            None if version is None else str(version),
            devices,
            tuple(str(path) for path in values["files"]),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise TestbedError(
            f"cannot read {_RECORD} on {node.name}: {error!a:.80}",
            cause="the file was changed by hand, or by another version of rocelab",
            action=f"Restore the host by hand: `make -C kernel uninstall`, and remove {FOLDER}.",
        ) from error
    return before


def save(node: Node, before: HostState) -> None:
    """Write the record, and copy the files that will be overwritten."""
    root = node.root
    root.run(["install", "-d", "-m", "700", FOLDER, _COPIES])
    for path in before.files:
        copy = PurePosixPath(f"{_COPIES}{path}")
        # not `cp --parents`: that of Debian 12 fails for a path through a link, as /lib is
        root.run(["install", "-d", str(copy.parent)])
        root.run(["cp", "-a", path, str(copy)])
    # written last: without it the host counts as not prepared
    root.run(["tee", _RECORD], stdin=json.dumps(asdict(before)) + "\n")


def restore_files(node: Node, before: HostState) -> None:
    """Restore the files from their copies, and remove those that did not exist."""
    root = node.root
    for path in before.touched:
        if path in before.files:
            root.run(["cp", "-a", f"{_COPIES}{path}", path])
        else:
            root.run(["rm", "-f", path])


def forget(node: Node) -> None:
    """Remove the record and the copies; the host then counts as not prepared."""
    node.root.run(["rm", "-rf", FOLDER])
