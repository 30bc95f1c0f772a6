# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes of a Slurm allocation as a testbed: hosts of a user's own, reached by srun(1)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack

from rocelab.errors import UsageError
from rocelab.plans.catalog import Provider, Transport
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.node import DataLink, Node, local
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.user_connection import UserNode
from rocelab.testbed.slurm import allocation, data_network, mpi_ranks
from rocelab.testbed.slurm.allocation import Allocation
from rocelab.testbed.slurm.job_step import JobStep
from rocelab.testbed.ssh.connect import check_host
from rocelab.testbed.ssh.inventory import Host
from rocelab.testbed.ssh.ssh_testbed import SshTestbed, set_up

_UNKNOWN_LINK = DataLink("", "", "", 0)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


class SlurmTestbed(SshTestbed):
    """Nodes of an allocation; `down` undoes the setup. The allocation stays."""

    provider = Provider.SLURM
    job = ""
    slurm_names: tuple[str, ...] = ()
    plugin = ""

    @property
    def control(self) -> Sequence[ControlEnd] | None:
        """None where srun starts the ranks; else as for other hosts."""
        return None if self.plugin else super().control

    def alive(self) -> None:
        """Raise TestbedError when the job has ended, or a node no longer answers."""
        allocation.check_running(self.job)
        super().alive()

    def rank_starter(self, nodes: int, per_node: int) -> tuple[Node, tuple[str, ...]] | None:
        """Return where to run which command line before that of a rank; None for mpirun."""
        if not self.plugin:
            return None
        here = local.LocalConnection(is_root=os.geteuid() == 0)
        words = mpi_ranks.starter(self.job, self.slurm_names[:nodes], per_node, self.plugin)
        return CommandNode("this machine", _UNKNOWN_LINK, here), words


def up(
    listed: Sequence[Host],
    *,
    transports: Collection[Transport],
    nodes: int,
    root_for: str,
    say: Callable[[str], None] = lambda _: None,
) -> SlurmTestbed:
    """Return the first `nodes` nodes of this process's allocation as a testbed.

    `listed`: an inventory's hosts, whose `host` is Slurm's name of a node; empty to find the data
    interfaces. Raises UsageError outside an allocation or when it has fewer nodes, TestbedError
    like rocelab.testbed.ssh.ssh_testbed.up.
    """
    job = allocation.current()
    if len(job.nodes) < nodes:
        raise UsageError(
            f"the plan needs {nodes} nodes, and Slurm's job {job.job} has {len(job.nodes)}",
            cause="each node of the plan runs on its own machine",
            action=f"Allocate more: `salloc --nodes={nodes}`.",
        )
    hosts = _hosts_of_job(listed, job.nodes, nodes) if listed else ()
    used = tuple(host.host for host in hosts) or job.nodes[:nodes]
    say(f"Slurm's job {job.job}: {' and '.join(used)}; time left: {job.left}")
    hosts = hosts or find_hosts(job, used)
    say("data link: " + ", ".join(f"{host.name} {host.netdev}" for host in hosts))

    def one(host: Host) -> UserNode:
        step = JobStep(job.job, host.host)
        return check_host(host, step, lambda link, step: UserNode(host.name, link, step), root_for)

    with ExitStack() as stack:
        reached = at_once(one, hosts)
        ends, others = set_up(reached, hosts, transports, stack)
        testbed = SlurmTestbed(ends, stack.pop_all(), hosts[0].control, others)
    testbed.job, testbed.slurm_names = job.job, used
    testbed.plugin = mpi_ranks.plugin(reached[0])
    return testbed


def find_hosts(job: Allocation, used: Sequence[str], netdev: str = "") -> tuple[Host, ...]:
    """Return nodes of an allocation as hosts, with `netdev` or what `data_network` finds."""
    if netdev:
        netdevs = [netdev] * len(used)
    else:
        bare = [UserNode(name, _UNKNOWN_LINK, JobStep(job.job, name)) for name in used]
        netdevs = data_network.find(bare)
    return tuple(
        Host(name=_short(name, number), host=name, netdev=each)
        for number, (name, each) in enumerate(zip(used, netdevs, strict=True), start=1)
    )


def _short(name: str, number: int) -> str:
    """Return a node's name as rocelab writes it, in output and in files."""
    short = name.partition(".")[0].lower()
    return short if _NAME.fullmatch(short) else f"n{number}"


def _hosts_of_job(listed: Sequence[Host], allocated: Sequence[str], nodes: int) -> tuple[Host, ...]:
    """Return the first `nodes` of the allocated nodes that the inventory lists. Raises UsageError.

    `--nodes` of `rocelab study run` leaves some of the inventory's.
    """
    by_name = {host.host: host for host in listed}
    known = [by_name[name] for name in allocated if name in by_name]
    if len(known) < nodes:
        lacking = next(name for name in allocated if name not in by_name)
        raise UsageError(
            f"the inventory does not list {lacking}, a node of the allocation",
            cause="its `host` must be Slurm's name of a node",
            action="Leave out --inventory, or write one: `rocelab hosts slurm >hosts.toml`.",
        )
    return tuple(known[:nodes])
