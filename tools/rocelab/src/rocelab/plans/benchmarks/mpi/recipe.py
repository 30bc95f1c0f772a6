# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of Open MPI and UCX that make each transport carry the messages.

docs/howto/mpi.md says what each setting is for and what happens without it. They are environment
variables, which Open MPI 4 and 5 both read; each ignores names it does not know. The settings
prove nothing about the transport: rocelab.measure.transport_proof does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rocelab.errors import CellError
from rocelab.plans.benchmarks import ucx
from rocelab.plans.catalog import Transport
from rocelab.plans.plan import MpiPlan

_SAFE = re.compile(r"[A-Za-z0-9_.,:^/+-]*")

# We exclude components instead of including some, because excluding an unknown name is no error.
# Over TCP, ob1 may use only tcp and, within a node, shared memory.
_NOT_TCP = "^openib,ofi,uct,usnic,smcuda,portals4"
_NO_SHARED_MEMORY = ",sm,vader"


@dataclass(frozen=True)
class Place:
    """A node's end of the data link, as MPI needs it."""

    node: str
    netdev: str
    device: str = ""
    port: int = 0
    gid_index: int = -1
    cpus: str = ""
    """The processors that ranks may use there, as taskset(1) lists them; empty: all."""


def for_job(mpi: MpiPlan, agent: str, *, control: str | None, ipv6: bool = False) -> dict[str, str]:
    """Return the settings of mpirun and of all ranks.

    `agent`: the program that starts a daemon on another node. `control`: the first node's interface
    that connects the daemons, by IPv6 if `ipv6`; None if all ranks are on one machine.
    """
    settings = {
        **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
        **dict.fromkeys(("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
        # allow more ranks than processors: Open MPI 4, then 5
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
            # the names of `mpirun` are not for a resolver
            "OMPI_MCA_orte_do_not_resolve": "1",
            "PRTE_MCA_prte_do_not_resolve": "1",
        }
    if ipv6:
        settings |= {
            "OMPI_MCA_oob_tcp_disable_ipv6_family": "0",
            "PRTE_MCA_prte_disable_ipv6_family": "0",
        }
    settings |= {f"OMPI_MCA_{name}": value for name, value in map(_split, mpi.mca)}
    return settings


def for_node(
    transport: Transport,
    place: Place,
    *,
    one_machine: bool,
    traffic_class: int | None = None,
    service_level: int | None = None,
) -> dict[str, str]:
    """Return the settings of the ranks on one node. Raises CellError for an unsafe value.

    `one_machine`: all nodes share a machine, so shared memory would keep messages off the link.
    Traffic class and service level are for verbs; None leaves them to UCX.
    """
    rules = _tcp if transport.family == "tcp" else _verbs if transport.is_rxe else _adapter
    settings = {"ROCELAB_NODE": place.node, **rules(place, one_machine)}
    if place.cpus:
        settings["ROCELAB_CPUS"] = place.cpus
    asked = {"UCX_IB_TRAFFIC_CLASS": traffic_class, "UCX_IB_SL": service_level}
    if transport.family == "verbs":
        settings |= {name: str(value) for name, value in asked.items() if value is not None}
    for name, value in settings.items():
        if not _SAFE.fullmatch(value):
            raise CellError(f"{name} of {place.node} would be {value!a:.60}")
    return settings


def _verbs(place: Place, one_machine: bool) -> dict[str, str]:
    settings = {
        # otherwise ob1 silently sends everything over TCP and ignores all UCX settings
        "OMPI_MCA_pml": "ucx",
        "UCX_NET_DEVICES": f"{place.device}:{place.port}",
        "UCX_TLS": "rc_verbs,ud_verbs,self" + ("" if one_machine else ",sm"),
        # ranks that share one processor may be slow to answer; UCX's default is 30 s
        "UCX_UD_TIMEOUT": "300s",
        **dict([ucx.OVER_IPV4]),
    }
    if place.gid_index >= 0:
        settings["UCX_IB_GID_INDEX"] = str(place.gid_index)
    return settings


def _adapter(place: Place, one_machine: bool) -> dict[str, str]:
    """Like `_verbs`, but UCX may use the adapter's own transports, such as rc_mlx5."""
    tls = "rc,ud,self" + ("" if one_machine else ",sm")
    return {**_verbs(place, one_machine), "UCX_TLS": tls}


def _tcp(place: Place, one_machine: bool) -> dict[str, str]:
    return {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": _NOT_TCP + (_NO_SHARED_MEMORY if one_machine else ""),
        "OMPI_MCA_btl_tcp_if_include": place.netdev,
    }


def host_names(nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names by which mpirun knows its hosts.

    mpirun compares each name with its machine's host name, which need not be the node's name. If
    none matches, it waits for a daemon that nobody starts.
    """
    return ("localhost", *(f"rocelab-{node}" for node in nodes[1:]))


def mpirun(mpi: MpiPlan, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Return mpirun's command line: ranks in blocks, `ranks_per_node` on each node.

    With one node, mpirun needs no daemon.
    """
    hosts = (
        ("--host", ",".join(f"{name}:{mpi.ranks_per_node}" for name in host_names(nodes)))
        if len(nodes) > 1
        else ()
    )
    return ("mpirun", *hosts, "-n", str(mpi.ranks), "--bind-to", "none")


_OURS = ("pml", "btl", "plm", "oob", "prte", "mpi_yield_when_idle")
"""Prefixes of the parameters that a plan must not set: the transport and the launch do."""


def check_mca(setting: str) -> bool:
    """Return whether `name=value` is an MCA parameter that a plan may set."""
    name, equals, value = setting.partition("=")
    good = re.fullmatch(r"[a-z][a-z0-9_]{1,79}", name) and _SAFE.fullmatch(value)
    return bool(equals and good) and not name.startswith(_OURS)


def _split(setting: str) -> tuple[str, str]:
    name, _, value = setting.partition("=")
    return name, value


def as_file(settings: Mapping[str, str]) -> str:
    """Format settings as lines for a shell; `for_node` has checked that they are safe."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())
