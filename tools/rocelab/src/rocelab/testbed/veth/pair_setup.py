# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a layout on a machine, prove that traffic takes it, and undo everything."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from rocelab.errors import TestbedError
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import Endpoint
from rocelab.testbed.veth import layout
from rocelab.testbed.veth.layout import Layout


def make(machine: Node, plan: Layout) -> None:
    """Make the ends. Raises TestbedError and undoes everything when that fails."""
    try:
        _run_all(machine, plan.make())
        check(machine, plan)
    except BaseException:
        remove(machine)
        raise


def _run_all(machine: Node, commands: Iterable[Sequence[str]]) -> None:
    """Run all commands in one round trip, up to the first failure, which `-x` identifies."""
    script = "\n".join(shlex.join(argv) for argv in commands)
    done = machine.root.run(("sh", "-exc", script), timeout=180, check=False)
    if done.returncode:
        stderr = done.stderr.splitlines()
        traced = [line.removeprefix("+ ") for line in stderr if line.startswith("+ ")]
        raise TestbedError(
            f"`{traced[-1] if traced else 'sh'}` on {machine.name} exited with {done.returncode}",
            cause="\n".join(line for line in stderr if not line.startswith("+ "))[-500:],
        )


def check(machine: Node, plan: Layout) -> None:
    """Check that the kernel routes between ends through their own interfaces and not over lo."""
    for argv, netdev in plan.expected_routes():
        answer = machine.run(argv, check=False).stdout.split()
        if "dev" not in answer or answer[answer.index("dev") + 1] != netdev:
            raise TestbedError(
                f"packets between the ends would not cross the veth pair: "
                f"`{' '.join(argv)}` prints {' '.join(answer)!a:.120}",
                cause="another routing rule or route on this machine takes precedence",
                action="Look at `ip rule` and `ip route show table all`.",
            )


def remove(machine: Node) -> None:
    """Undo `make`, as far as there is anything to undo."""
    lines = (shlex.join(argv) for argv in layout.remove())
    machine.root.run(["sh", "-c", "\n".join(lines)], check=False)


def ends(machine: Node, plan: Layout) -> list[Endpoint]:
    """Return the ends as nodes."""
    return [Endpoint(end.name, end.link(plan.mtu), end.device, machine) for end in plan.ends]
