# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of Open MPI and UCX by which each transport is known to carry the messages: data.

What each line is for, and what happens without it, is in docs/howto/mpi.md. Settings are
environment variables, which Open MPI 4 and 5 read alike; a name that one of them does not know
is nothing to it. Proven right by the wire, not by them: rocelab.run.proof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rocelab.bench.catalog import Transport
from rocelab.bench.plan import MpiPlan
from rocelab.errors import CellError

_SAFE = re.compile(r"[A-Za-z0-9_.,:^/+-]*")

# Excluding and not including: a name that this version does not have may be excluded. Over tcp
# ob1 has tcp and, within a node, shared memory; nothing else must be left to choose.
_NOT_TCP = "^openib,ofi,uct,usnic,smcuda,portals4"
_NO_SHARED_MEMORY = ",sm,vader"


@dataclass(frozen=True)
class Place:
    """What a node has for MPI, at its end of the data link."""

    node: str
    netdev: str
    device: str = ""
    port: int = 0
    gid_index: int = -1


def for_job(mpi: MpiPlan, control: str | None, agent: str) -> dict[str, str]:
    """Settings of mpirun itself and of all ranks.

    `control`: the network (CIDR) over which the daemons meet, None when all ranks are on one
    machine. `agent`: the program that starts a daemon on another node.
    """
    settings = {
        **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
        **dict.fromkeys(("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
        # more ranks than processors, and none tied to one: Open MPI 4, then 5
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": "slot:OVERSUBSCRIBE",
        "OMPI_MCA_mpi_yield_when_idle": "1" if mpi.yield_when_idle else "0",
    }
    if control is not None:
        settings |= {
            "OMPI_MCA_oob_tcp_if_include": control,
            "PRTE_MCA_prte_if_include": control,
            "OMPI_MCA_plm_rsh_agent": agent,
            "PRTE_MCA_plm_ssh_agent": agent,
        }
    settings |= {f"OMPI_MCA_{name}": value for name, value in map(_split, mpi.mca)}
    return settings


def for_node(transport: Transport, place: Place, *, one_machine: bool) -> dict[str, str]:
    """Settings of the ranks of one node. Raises CellError for what cannot be a setting.

    `one_machine`: both ends are on it, so that shared memory would keep messages off the link.
    """
    rules = _tcp if transport.family == "tcp" else _verbs if transport.is_rxe else _adapter
    settings = {"ROCELAB_NODE": place.node, **rules(place, one_machine)}
    for name, value in settings.items():
        if not _SAFE.fullmatch(value):
            raise CellError(f"{name} of {place.node} would be {value!a:.60}")
    return settings


def _verbs(place: Place, one_machine: bool) -> dict[str, str]:
    settings = {
        # without it ob1 carries all over TCP, ignores every UCX setting, and says nothing
        "OMPI_MCA_pml": "ucx",
        "UCX_NET_DEVICES": f"{place.device}:{place.port}",
        "UCX_TLS": "rc_verbs,ud_verbs,self" + ("" if one_machine else ",sm"),
        # ranks that starve each other on one processor are late, not gone: UCX's own is 30 s
        "UCX_UD_TIMEOUT": "300s",
    }
    if place.gid_index >= 0:
        settings["UCX_IB_GID_INDEX"] = str(place.gid_index)
    return settings


def _adapter(place: Place, one_machine: bool) -> dict[str, str]:
    """As `_verbs`, but UCX may talk to the adapter by a way of the adapter's own, as rc_mlx5."""
    tls = "rc,ud,self" + ("" if one_machine else ",sm")
    return {**_verbs(place, one_machine), "UCX_TLS": tls}


def _tcp(place: Place, one_machine: bool) -> dict[str, str]:
    return {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": _NOT_TCP + (_NO_SHARED_MEMORY if one_machine else ""),
        "OMPI_MCA_btl_tcp_if_include": place.netdev,
    }


def mpirun(mpi: MpiPlan, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """mpirun with its options: ranks in blocks, `ranks_per_node` on each node.

    One node: no daemon but mpirun itself.
    """
    hosts = (
        ("--host", ",".join(f"{node}:{mpi.ranks_per_node}" for node in nodes))
        if len(nodes) > 1
        else ()
    )
    return ("mpirun", *hosts, "-n", str(mpi.ranks), "--bind-to", "none")


_OURS = ("pml", "btl", "plm", "oob", "prte", "mpi_yield_when_idle")
"""What the transport and the launch decide, and no plan: these, and all that begin so."""


def check_mca(setting: str) -> bool:
    """Whether a plan's `name=value` can be an MCA parameter that a plan may set."""
    name, equals, value = setting.partition("=")
    good = re.fullmatch(r"[a-z][a-z0-9_]{1,79}", name) and _SAFE.fullmatch(value)
    return bool(equals and good) and not name.startswith(_OURS)


def _split(setting: str) -> tuple[str, str]:
    name, _, value = setting.partition("=")
    return name, value


def as_file(settings: Mapping[str, str]) -> str:
    """Settings as the lines that a shell reads; `for_node` has seen to their content."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())
