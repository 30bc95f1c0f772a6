# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a layout on a machine, prove that traffic takes it, and undo everything."""

from __future__ import annotations

import shlex

from rocelab.errors import TestbedError
from rocelab.node import Node
from rocelab.node.endpoint import Endpoint
from rocelab.provider.veth import layout
from rocelab.provider.veth.layout import Layout


def make(machine: Node, plan: Layout) -> None:
    """Make the ends. Raises TestbedError, and leaves nothing behind, when it cannot be had."""
    try:
        for argv in plan.make():
            machine.root.run(argv)
        check(machine, plan)
    except BaseException:
        remove(machine)
        raise


def check(machine: Node, plan: Layout) -> None:
    """Ask the kernel whether each end's way to each other is its own interface, and not lo."""
    for argv, netdev in plan.routes_to_ask():
        answer = machine.run(argv, check=False).stdout.split()
        if "dev" not in answer or answer[answer.index("dev") + 1] != netdev:
            raise TestbedError(
                f"packets between the ends would not cross the veth pair: "
                f"`{' '.join(argv)}` says {' '.join(answer)!a:.120}",
                cause="another routing rule or route of this machine comes first",
                action="look at `ip rule` and `ip route show table all`",
            )


def remove(machine: Node) -> None:
    """Undo `make`: nothing happens if there is nothing to undo."""
    lines = (shlex.join(argv) for argv in layout.remove())
    machine.root.run(["sh", "-c", "\n".join(lines)], check=False)


def ends(machine: Node, plan: Layout) -> list[Endpoint]:
    """The ends as nodes."""
    return [Endpoint(end.name, end.link(plan.mtu), end.device, machine) for end in plan.ends]
