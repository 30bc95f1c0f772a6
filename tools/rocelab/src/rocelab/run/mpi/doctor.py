# SPDX-License-Identifier: GPL-2.0-or-later
"""Can these nodes run MPI over a transport? One look after the other, and what to change."""

from __future__ import annotations

import ipaddress
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocelab.bench import plan_file
from rocelab.bench.catalog import Transport
from rocelab.bench.mpi.diagnosis import diagnose
from rocelab.errors import CellError
from rocelab.node import Node
from rocelab.node.endpoint import machines
from rocelab.run.cell import measure
from rocelab.run.rig import Rig

_ENOUGH_LOCKED_KIB = 64 * 1024
"""UCX registers its buffers at once; Debian's default of 8 MiB is not enough for them."""
_LOCKED = "ulimit -l; grep CapEff /proc/self/status"
_CAP_IPC_LOCK = 14
"""capabilities(7): whoever has it, as root, may lock what it likes."""
_EXCHANGE = """
[plan]
name = "doctor"
repetitions = 1
transports = ["{transport}"]
probes = []
[[benchmark]]
tool = "mpibench"
test = "latency"
sizes = [4, 4096]
iterations = 10
timeout = 90
"""


@dataclass(frozen=True)
class Look:
    """One thing to look at; `found` says what is there, or raises RocelabError."""

    name: str
    found: Callable[[], str]


def looks(rig: Rig, transport: Transport) -> list[Look]:
    """Everything that an MPI cell over `transport` needs, the cheap things first."""
    hosts = machines(rig.nodes)
    found = [
        Look("Open MPI", lambda: _each(hosts, _open_mpi)),
        Look("MTU", lambda: _mtu(rig)),
    ]
    if transport.family == "verbs":
        found += [
            Look("pml ucx", lambda: _each(hosts, _pml_ucx)),
            Look("locked memory", lambda: _each(hosts, _locked_memory)),
            Look("GID", lambda: _gids(rig, transport)),
        ]
    if rig.testbed.control is not None and len(hosts) > 1:
        network = rig.testbed.control
        found.append(Look("control network", lambda: _control(hosts, network)))
    found.append(Look("exchange", lambda: _exchange(rig, transport)))
    return found


def _each(hosts: list[Node], look: Callable[[Node], str]) -> str:
    said = {host.name: look(host) for host in hosts}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ", ".join(f"{name}: {text}" for name, text in said.items())


def _open_mpi(node: Node) -> str:
    done = node.run(("mpirun", "--version"), check=False)
    version = re.search(r"\(Open MPI\) (\d[\w.]*)", done.stdout)
    if version is None:
        raise CellError(
            f"{node.name} has no mpirun of Open MPI",
            cause=done.stderr.strip()[-200:],
            action=f"On {node.name}: apt-get install openmpi-bin.",
        )
    return f"Open MPI {version[1]}"


def _pml_ucx(node: Node) -> str:
    # root is not asked for leave by ompi_info, only by mpirun
    done = node.run(("ompi_info", "--parsable"), check=False)
    if not re.search(r"^mca:pml:ucx:", done.stdout, re.MULTILINE):
        raise CellError(
            f"Open MPI on {node.name} has no pml ucx",
            cause="it was built without UCX: it would carry everything over TCP, and say nothing",
            action=f"On {node.name}: install an Open MPI with UCX, as Debian's is, and libucx0.",
        )
    return "there"


def _locked_memory(node: Node) -> str:
    limit, _, status = node.run(("sh", "-c", _LOCKED)).stdout.partition("\n")
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    if capabilities and int(capabilities[1], 16) >> _CAP_IPC_LOCK & 1:
        return "no limit (CAP_IPC_LOCK)"
    if limit != "unlimited" and not (limit.isdecimal() and int(limit) >= _ENOUGH_LOCKED_KIB):
        raise CellError(
            f"{node.name} lets a process lock {limit[:20]!a} KiB of memory",
            cause="verbs buffers are locked, and UCX has some tens of MiB of them",
            action=f"On {node.name}: `* - memlock unlimited` in /etc/security/limits.d/.",
        )
    return limit if limit == "unlimited" else f"{limit} KiB"


def _mtu(rig: Rig) -> str:
    mtus = {
        node.name: node.run(("cat", f"/sys/class/net/{node.link.netdev}/mtu")).stdout.strip()
        for node in rig.nodes
    }
    if len(set(mtus.values())) > 1:
        told = ", ".join(f"{name}: {mtu[:10]}" for name, mtu in mtus.items())
        raise CellError(
            f"the MTUs of the data interfaces differ ({told})",
            cause="what the one sends in one packet, the other drops",
            action="Set the same on both: `ip link set … mtu …`.",
        )
    return f"{next(iter(mtus.values()))} bytes"


def _gids(rig: Rig, transport: Transport) -> str:
    places = rig.places(transport)
    return ", ".join(
        f"{place.node}: index {place.gid_index} of {place.device}:{place.port}" for place in places
    )


def _control(hosts: list[Node], network: str) -> str:
    """Every node has an address of its own on the control network."""
    wanted = ipaddress.ip_network(network)
    owners: dict[str, str] = {}
    for host in hosts:
        listing = json.loads(host.run(("ip", "-j", "-4", "addr", "show")).stdout or "[]")
        mine = [
            info["local"]
            for link in listing
            for info in link.get("addr_info", ())
            if ipaddress.ip_address(info["local"]) in wanted
        ]
        if not mine:
            raise CellError(
                f"{host.name} has no address on the control network {network}",
                cause="its interface was not made, or has lost its address",
                action=f"On {host.name}: `ip addr`.",
            )
        for address in mine:
            if address in owners:
                raise CellError(
                    f"{owners[address]} and {host.name} share the control address {address}",
                    cause="each daemon takes the other one's address for its own, and hangs",
                    action=f"Give {host.name} another address on {network}.",
                )
            owners[address] = host.name
    return ", ".join(f"{name} {address}" for address, name in owners.items())


def _exchange(rig: Rig, transport: Transport) -> str:
    """Two ranks, some messages, and the proof."""
    plan = plan_file.from_toml(_EXCHANGE.format(transport=transport.name), "doctor")
    (cell,) = plan.cells()
    with tempfile.TemporaryDirectory(prefix="rocelab-doctor-") as folder:
        outcome = measure(cell, rig, Path(folder))
        error = outcome.error
        if error is None:
            return f"two ranks over {transport.name}, proven by the wire"
        said = "".join(path.read_text("utf-8") for path in sorted(Path(folder).glob("*/mpirun.*")))
    advice = diagnose(said)
    if advice is None:
        raise error
    raise CellError(error.what, cause=advice.cause, action=advice.action) from error
