# SPDX-License-Identifier: GPL-2.0-or-later
"""Check whether nodes can run MPI over a transport, and say what to change if they cannot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from rocelab.directory import temporary_folder
from rocelab.errors import CellError
from rocelab.measure.cell import measure
from rocelab.measure.rig import Rig
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.mpi.diagnosis import diagnose
from rocelab.plans.catalog import Transport
from rocelab.plans.plan import Cell
from rocelab.testbed import control_network
from rocelab.testbed.node import Completed, Node
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.parallel import at_once

_ENOUGH_LOCKED_KIB = 64 * 1024
"""UCX registers its buffers when it starts; Debian's default of 8 MiB is too small for them."""
_LOCKED = "ulimit -l; grep CapEff /proc/self/status"
_CAP_IPC_LOCK = 14
"""capabilities(7): a process with this capability, such as root's, has no limit."""
_OMPI_INFO = ("sh", "-c", "command -v mpirun >/dev/null && exec ompi_info --parsable")
"""Unlike mpirun, ompi_info needs no --allow-run-as-root."""
_EXCHANGE = """
[plan]
name = "doctor"
repetitions = 1
transports = ["{transport}"]
probes = []
[[benchmark]]
tool = "mpibench"
test = "alltoall"
sizes = [4, 4096]
iterations = 10
timeout = 90
"""

_SECONDS_A_RANK = 30
"""Emulated nodes may share two processors: each further rank then takes longer to start."""


@dataclass(frozen=True)
class LaunchCheck:
    """One requirement; `run` returns what the nodes have, or raises RocelabError."""

    name: str
    run: Callable[[], str]
    alone: bool = False
    """Whether other checks must not run meanwhile."""


def launch_checks(rig: Rig, transport: Transport) -> list[LaunchCheck]:
    """Checks for everything that an MPI cell over `transport` needs, the quick ones first."""
    hosts = machines(rig.nodes)
    listings = _Listings(hosts)
    checks = [
        LaunchCheck("Open MPI", lambda: _each(hosts, listings.open_mpi)),
        LaunchCheck("MTU", lambda: _mtu(rig)),
    ]
    if transport.family == "verbs":
        checks += [
            LaunchCheck("pml ucx", lambda: _each(hosts, listings.pml_ucx)),
            LaunchCheck("locked memory", lambda: _each(hosts, _locked_memory)),
            LaunchCheck("GID", lambda: _gids(rig, transport)),
        ]
    if len(hosts) > 1:
        checks.append(LaunchCheck("control network", lambda: _control(hosts, rig)))
    checks.append(LaunchCheck("exchange", lambda: _exchange(rig, transport), alone=True))
    return checks


def _each(hosts: list[Node], check: Callable[[Node], str]) -> str:
    results = dict(zip((host.name for host in hosts), at_once(check, hosts), strict=True))
    if len(set(results.values())) == 1:
        return next(iter(results.values()))
    return ", ".join(f"{name}: {text}" for name, text in results.items())


class _Listings:
    """What `ompi_info` says on each host: asked once, as it loads all of Open MPI's components."""

    def __init__(self, hosts: list[Node]) -> None:
        self._hosts = hosts
        self._lock = Lock()
        self._said: dict[str, Completed] | None = None

    def _of(self, host: Node) -> Completed:
        with self._lock:
            if self._said is None:
                answers = at_once(lambda each: each.run(_OMPI_INFO, check=False), self._hosts)
                names = (each.name for each in self._hosts)
                self._said = dict(zip(names, answers, strict=True))
            return self._said[host.name]

    def open_mpi(self, host: Node) -> str:
        """Return the version of the host's Open MPI. Raises CellError."""
        done = self._of(host)
        version = re.search(r"^ompi:version:full:(\d[\w.]*)", done.stdout, re.MULTILINE)
        if version is None:
            raise CellError(
                f"{host.name} has no Open MPI: `ompi_info` does not name it",
                cause=done.stderr.strip()[-200:],
                action=f"On {host.name}: apt-get install openmpi-bin.",
            )
        return f"Open MPI {version[1]}"

    def pml_ucx(self, host: Node) -> str:
        """Check that the host's Open MPI has pml ucx. Raises CellError."""
        if not re.search(r"^mca:pml:ucx:", self._of(host).stdout, re.MULTILINE):
            raise CellError(
                f"Open MPI on {host.name} has no pml ucx",
                cause="it was built without UCX, so it would silently send everything over TCP",
                action=f"On {host.name}: install an Open MPI built with UCX, such as Debian's, "
                "and libucx0.",
            )
        return "available"


def _locked_memory(node: Node) -> str:
    limit, _, status = node.run(("sh", "-c", _LOCKED)).stdout.partition("\n")
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    if capabilities and int(capabilities[1], 16) >> _CAP_IPC_LOCK & 1:
        return "no limit (CAP_IPC_LOCK)"
    if limit != "unlimited" and not (limit.isdecimal() and int(limit) >= _ENOUGH_LOCKED_KIB):
        raise CellError(
            f"a process on {node.name} may lock only {limit[:20]!a} KiB of memory",
            cause="verbs buffers are locked in memory, and UCX uses tens of MiB of them",
            action=f"On {node.name}: put `* - memlock unlimited` in /etc/security/limits.d/.",
        )
    return limit if limit == "unlimited" else f"{limit} KiB"


def _mtu(rig: Rig) -> str:

    def one(node: Node) -> str:
        return node.run(("cat", f"/sys/class/net/{node.link.netdev}/mtu")).stdout.strip()

    mtus = dict(zip((node.name for node in rig.nodes), at_once(one, rig.nodes), strict=True))
    if len(set(mtus.values())) > 1:
        listed = ", ".join(f"{name}: {mtu[:10]}" for name, mtu in mtus.items())
        raise CellError(
            f"the MTUs of the data interfaces differ ({listed})",
            cause="a node drops packets that are larger than its own MTU",
            action="Set the same MTU on all nodes: `ip link set … mtu …`.",
        )
    return f"{next(iter(mtus.values()))} bytes"


def _gids(rig: Rig, transport: Transport) -> str:
    places = rig.places(transport)
    return ", ".join(
        f"{place.node}: index {place.gid_index} of {place.device}:{place.port}" for place in places
    )


def _control(hosts: list[Node], rig: Rig) -> str:
    """Check that each node has its own address on the control network."""
    ends = (rig.testbed.control or ())[: len(hosts)]
    has = dict(zip((host.name for host in hosts), at_once(_addresses, hosts), strict=True))
    for host, end in zip(hosts, ends, strict=True):
        if end.address not in has[host.name]:
            raise CellError(
                f"{host.name} does not have its control address {end.address}",
                cause=f"{end.netdev} does not exist, or has lost its address",
                action=f"On {host.name}: look at `ip addr`.",
            )
        for other in hosts:
            if other is not host and end.address in has[other.name]:
                raise CellError(
                    f"{host.name} and {other.name} share the control address {end.address}",
                    cause="each daemon takes the other's address for its own, and hangs",
                    action=f"On {other.name}: remove it, or give it another address.",
                )
    return ", ".join(f"{host.name} {end.address}" for host, end in zip(hosts, ends, strict=True))


def _addresses(host: Node) -> set[str]:
    listing = host.run(control_network.LISTING).stdout or "[]"
    return {str(own.ip) for _, own in control_network.addresses(listing)}


def exchange_cell(transport: Transport, nodes: int) -> Cell:
    """Return a cell in which each of the nodes sends to each other; more than a plan may have."""
    (cell,) = plan_file.from_toml(_EXCHANGE.format(transport=transport.name), "doctor").cells()
    mpi = cell.benchmark.mpi
    assert mpi is not None
    spread = replace(mpi, ranks=nodes, ranks_per_node=1)
    limit = max(cell.benchmark.timeout, _SECONDS_A_RANK * nodes)
    return replace(cell, benchmark=replace(cell.benchmark, mpi=spread, timeout=limit))


def _exchange(rig: Rig, transport: Transport) -> str:
    """Let a rank on each node exchange messages with each other, and prove the transport."""
    cell = exchange_cell(transport, len(rig.nodes))
    with temporary_folder(prefix="rocelab-doctor-") as folder:
        outcome = measure(cell, rig, Path(folder))
        error = outcome.error
        if error is None:
            return f"{len(rig.nodes)} ranks over {transport.name}, proven by the wire"
        output = "".join(
            path.read_text("utf-8") for path in sorted(Path(folder).glob("*/mpirun.*"))
        )
    advice = diagnose(output)
    if advice is None:
        raise error
    raise CellError(error.what, cause=advice.cause, action=advice.action) from error
