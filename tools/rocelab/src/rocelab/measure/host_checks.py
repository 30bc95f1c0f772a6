# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that can be wrong with hosts of one's own, each with the command that mends it.

A check looks at all hosts and names the first that fails it. A host that refuses the login fails
its own check, and the others are looked at without it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rocelab.accelerators import is_emulated
from rocelab.directory import temporary_folder
from rocelab.errors import CellError, RocelabError, TestbedError
from rocelab.measure import pair, pair_step
from rocelab.measure.counters import Counters
from rocelab.measure.data_network import Pings
from rocelab.measure.mpi.launch_check import LaunchCheck, launch_checks
from rocelab.measure.rig import Rig
from rocelab.plans import plan_file
from rocelab.plans.benchmarks.pair_tools import TOOLS
from rocelab.plans.catalog import Probe, Transport
from rocelab.record import frames, layout
from rocelab.testbed import linktap
from rocelab.testbed.hosts import host_state, prebuilt
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.ssh_node import SshNode
from rocelab.testbed.reachability import reaches
from rocelab.testbed.ssh import ssh_testbed
from rocelab.testbed.ssh.connect import connect
from rocelab.testbed.ssh.inventory import Host
from rocelab.testbed.ssh.ssh_testbed import SshTestbed

_SNAPLEN = 64
_CLOCKS_APART = 0.01
"""Seconds: more, and captures of several hosts are in the wrong order when merged."""
_VERSIONS = 'for name; do printf "%s: " "$name"; "$name" --version 2>&1 | head -n 1; done'
_VERSION = re.compile(r"\(rocelab\) (\S{1,40})$")
_UNABLE = "error while loading shared libraries"
_EXCHANGE = """
[plan]
name = "doctor"
repetitions = 1
transports = ["{transport}"]
[[benchmark]]
tool = "perftest"
test = "send_lat"
sizes = [64]
iterations = 10
"""
_SECONDS, _EMULATED_SECONDS = 10, 120
"""Within which two hosts have exchanged ten messages."""


@contextmanager
def open_checks(hosts: Sequence[Host], transport: Transport) -> Iterator[Iterator[LaunchCheck]]:
    """Log in to the hosts and yield the checks of what `transport` needs there, quick ones first.

    Raises MissingError if ssh(1) is not installed.
    """
    with ExitStack() as stack:
        logins = at_once(lambda host: _login(host, transport, stack), hosts)
        yield _checks(hosts, logins, transport, stack)


def _login(host: Host, transport: Transport, stack: ExitStack) -> SshNode | RocelabError:
    root_for = transport.name if transport.is_rxe else ""
    try:
        (node,) = stack.enter_context(connect([host], root_for=root_for))
    except TestbedError as error:
        return error
    return node


def _of_any(nodes: Sequence[Node], transport: Transport) -> Iterator[LaunchCheck]:
    """Checks of one host or more."""
    yield LaunchCheck("clocks", lambda: clocks(nodes), alone=True)
    if transport.is_rxe:
        yield LaunchCheck("driver", lambda: driver(nodes))
        yield LaunchCheck("probes", lambda: probes(nodes))


def _checks(
    hosts: Sequence[Host],
    logins: Sequence[SshNode | RocelabError],
    transport: Transport,
    stack: ExitStack,
) -> Iterator[LaunchCheck]:
    for host, login in zip(hosts, logins, strict=True):
        yield LaunchCheck(f"login {host.name}", _login_check(login))
    pairs = [
        (host, node) for host, node in zip(hosts, logins, strict=True) if isinstance(node, SshNode)
    ]
    nodes = [node for _, node in pairs]
    if nodes:  # without, each host has said why
        yield from _of_any(nodes, transport)
    if len(nodes) < len(hosts):
        return  # what follows needs all
    try:
        testbed = ssh_testbed.on(nodes, hosts, [transport], stack)
    except RocelabError as error:
        yield LaunchCheck("testbed", _login_check(error))
        return
    over = testbed.over(transport)
    pings = Pings(over.nodes)
    yield LaunchCheck("data network", pings.data_network)
    yield LaunchCheck("MTU end to end", pings.mtu_end_to_end)
    if not testbed.missing:
        yield LaunchCheck("capture", lambda: capture(over.nodes))
    try:
        rig = Rig.on(testbed).first(len(nodes), transport)
    except RocelabError as error:
        yield LaunchCheck("verbs devices", _login_check(error))
        return
    broken = []

    def exchange() -> str:
        try:
            return verbs_exchange(rig, transport)
        except RocelabError:
            broken.append(transport)
            raise

    for check in launch_checks(rig, transport):
        if check.name == "exchange":
            if transport.family == "verbs":
                yield LaunchCheck("verbs exchange", exchange, alone=True)
            if broken:
                return  # MPI would only wait longer for the same packets
            yield LaunchCheck("MPI exchange", check.run, alone=True)
        elif check.name == "control network":
            yield LaunchCheck("control network", lambda: both_ways(testbed))
            yield LaunchCheck("control addresses", check.run)
        else:
            yield check


def _login_check(login: SshNode | RocelabError) -> Callable[[], str]:
    def run() -> str:
        if isinstance(login, RocelabError):
            raise login
        how = "as root" if login.target.is_root else "with sudo"
        if not login.has_root:
            how = "without root, so without a capture"
        return f"{how}; data interface {login.link.netdev}, {login.link.ipv4}"

    return run


def clocks(nodes: Sequence[Node]) -> str:
    """Compare the hosts' clocks with this machine's; a round trip's half is the uncertainty."""

    @dataclass(frozen=True)
    class Offset:
        seconds: float
        uncertain: float

    def one(node: Node) -> Offset:
        began = time.time()
        there = float(node.run(("date", "+%s.%N")).stdout)
        ended = time.time()
        return Offset(there - (began + ended) / 2, (ended - began) / 2)

    offsets = at_once(one, nodes)
    for node, offset in zip(nodes, offsets, strict=True):
        if abs(offset.seconds) > offset.uncertain + _CLOCKS_APART:
            raise TestbedError(
                f"the clock of {node.name} is {offset.seconds:+.3f} s off this machine's",
                cause="one of them does not follow a time server; captures of several hosts would "
                "be merged in the wrong order",
                action=f"On {node.name}: `timedatectl set-ntp true`, or `chronyc makestep`.",
            )
    worst = max((each.uncertain for each in offsets), default=0.0)
    return f"within {worst + _CLOCKS_APART:.2f} s of this machine's"


def driver(nodes: Sequence[Node]) -> str:
    """The instrumented driver is loaded, the same on all, and this checkout's."""
    states = at_once(host_state.read_loaded, nodes)
    for node, state in zip(nodes, states, strict=True):
        if not state.version:
            raise TestbedError(
                f"{node.name} does not run the instrumented rdma_rxe",
                cause="the host is not prepared, or its stock driver was loaded again",
                action="Run `rocelab hosts prepare`.",
            )
        built = prebuilt.find(state.release)
        if built is not None and built.driver.patch_id not in state.version:
            raise TestbedError(
                f"{node.name} runs {state.version}, and this checkout has built "
                f"rocelab-{built.driver.patch_id}",
                cause="the host was prepared by another version of rocelab",
                action="Run `rocelab hosts prepare` again.",
            )
    versions = dict.fromkeys(state.version for state in states if state.version)
    if len(versions) > 1:
        raise TestbedError(
            f"the hosts run different drivers: {', '.join(versions)}",
            cause="they were prepared by different versions of rocelab",
            action="Run `rocelab hosts prepare` again.",
        )
    return ", ".join(versions)


def probes(nodes: Sequence[Node]) -> str:
    """The probes are installed, and the same version on all hosts."""

    unable: dict[str, str] = {}

    def one(node: Node) -> dict[str, str]:
        listing = node.root.run(("sh", "-c", _VERSIONS, "sh", *Probe), check=False).stdout
        by_probe = {}
        for line in listing.splitlines():
            name, _, rest = line.partition(": ")
            version = _VERSION.search(rest)
            if name in list(Probe) and version:
                by_probe[name] = version[1]
            elif _UNABLE in rest:
                unable.setdefault(node.name, rest)
        return by_probe

    by_host = dict(zip((node.name for node in nodes), at_once(one, nodes), strict=True))
    for name, versions in by_host.items():
        if lacks := [str(probe) for probe in Probe if probe not in versions]:
            raise TestbedError(
                f"{name} has no {', '.join(lacks)}",
                cause=unable.get(name)
                or "the host is not prepared, or root's PATH there lacks /usr/local/sbin",
                action="Run `rocelab hosts prepare`.",
            )
    if len({tuple(sorted(versions.items())) for versions in by_host.values()}) > 1:
        raise TestbedError(
            f"the hosts have different probes: {by_host}",
            cause="they were prepared by different versions of rocelab",
            action="Run `rocelab hosts prepare` again.",
        )
    return ", ".join(f"{name} {version}" for name, version in next(iter(by_host.values())).items())


def capture(nodes: Sequence[Node]) -> str:
    """linktap may capture each host's data interface, and its file comes here."""

    def one(node: Node) -> None:
        with temporary_folder(prefix="rocelab-doctor-") as folder:
            path = Path(folder) / layout.WIRE_CAPTURE
            with linktap.capture(node, [node.link.netdev], path, _SNAPLEN):
                pass
            frames.count(path)

    at_once(one, nodes)
    return "linktap captures " + ", ".join(f"{node.name} {node.link.netdev}" for node in nodes)


def both_ways(testbed: SshTestbed) -> str:
    """MPI's daemons reach mpirun, and mpirun's host reaches them."""
    first, ends = testbed.nodes[0], testbed.control or ()
    others = list(zip(testbed.nodes[1:], ends[1:], strict=True))
    answers = at_once(lambda other: reaches([first], other[0], other[1].address), others)
    for (node, end), (error,) in zip(others, answers, strict=True):
        if error:
            raise TestbedError(
                f"{first.name} does not reach {node.name} at {end.address} ({end.netdev})",
                cause=error,
                action=f"On {first.name}: `ping {end.address}`; allow TCP there, or name another "
                "network with `control` in the inventory.",
            )
    return ", ".join(
        f"{node.name} {end.address} ({end.netdev})"
        for node, end in zip(testbed.nodes, ends, strict=True)
    )


def verbs_exchange(rig: Rig, transport: Transport) -> str:
    """The first host exchanges messages with each other over the transport's devices."""

    def one(other: int) -> CellError | None:
        two = replace(
            rig, nodes=(rig.nodes[0], rig.nodes[other]), ports=(rig.ports[0], rig.ports[other])
        )
        try:
            _exchange(two, transport)
        except CellError as error:
            return error
        return None

    others = range(1, len(rig.nodes))
    for other, failed in zip(others, at_once(one, others), strict=True):
        # alone, so that the counters are of these two
        if failed and (error := one(other)):
            raise error
    return f"messages over {transport.name}, there and back"


def _exchange(rig: Rig, transport: Transport) -> None:
    (cell,) = plan_file.from_toml(_EXCHANGE.format(transport=transport.name), "doctor").cells()
    ends = rig.ends(transport)
    job = pair_step.job_of(cell, cell.benchmark.sizes[0], tcp_port=next(rig.tcp_ports), ends=ends)
    before = rig.counters()
    try:
        slow = is_emulated(rig.testbed.accelerator)
        limit = _EMULATED_SECONDS if slow else _SECONDS
        pair.run(TOOLS[cell.test.tool], job, *rig.nodes, timeout=limit)
    except CellError as error:
        moved = [now.since(then) for now, then in zip(rig.counters(), before, strict=True)]
        raise _explain_loss(rig, moved, transport, error) from error


def _explain_loss(
    rig: Rig, moved: Sequence[Counters], transport: Transport, error: CellError
) -> CellError:
    """Say which way packets were lost, if the counters of rxe show it."""
    for node, there, other, here in (
        (rig.nodes[0], moved[0], rig.nodes[1], moved[1]),
        (rig.nodes[1], moved[1], rig.nodes[0], moved[0]),
    ):
        if transport.roce == 2 and there.rxe.get("sent_pkts") and not here.rxe.get("rcvd_pkts"):
            return CellError(
                f"{other.name} receives none of the RoCE packets that {node.name} sends",
                cause=f"a firewall, on {other.name} or on the way, drops UDP port 4791; or the "
                "adapter takes it for itself",
                action=f"On {other.name}: `iptables -I INPUT -p udp --dport 4791 -j ACCEPT`, or "
                "`nft insert rule inet filter input udp dport 4791 accept`, or "
                "`firewall-cmd --add-port=4791/udp`.",
            )
    return error
