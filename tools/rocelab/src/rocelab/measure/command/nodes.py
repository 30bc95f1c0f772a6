# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes for a user's command: those of a testbed that is up, or some made for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rocelab import kernel_lines
from rocelab.errors import UsageError
from rocelab.measure import rdma_cm_mode
from rocelab.measure.command.ends import ends_of
from rocelab.measure.command.request import Request
from rocelab.plans.catalog import Provider
from rocelab.testbed import by_name, lease
from rocelab.testbed.by_name import VirtualTestbed
from rocelab.testbed.node import Node
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.prepare_node import offer_roce_v1, roce_v1_default
from rocelab.testbed.package_image import Packages
from rocelab.testbed.preparation import Payload
from rocelab.testbed.qemu.state_folder import State

MTU = 4200
"""Of the link between nodes that are made here: as of `rocelab up`."""
_V1 = 1

Say = Callable[[str], None]


@contextmanager
def ready(
    request: Request, name: str, line: str | None, packages: Packages, say: Say
) -> Iterator[VirtualTestbed]:
    """Yield testbed `name` if it is up and fits, else one that exists while the context lasts.

    `line` is the kernel line, None for any; the nodes have `packages`, perhaps among others. A
    testbed that is up is shared with other commands, unless the request needs it alone. Raises
    UsageError when another process measures there or changes it, or when it has no driver.
    """
    with ExitStack() as stack:
        testbed = _running(request, name, line, packages, say, stack)
        if testbed is None:
            line = line or kernel_lines.DEFAULT_LINE
            testbed = _make(request, line, packages, say, stack)
        if request.transport.roce == _V1:
            offer_roce_v1(testbed.nodes)
            ends = ends_of(testbed.nodes, request.transport)
            stack.enter_context(rdma_cm_mode.for_v1(testbed.nodes, ends, request.transport))
        yield testbed


def _running(
    request: Request,
    name: str,
    line: str | None,
    packages: Packages,
    say: Say,
    stack: ExitStack,
) -> VirtualTestbed | None:
    if not State(name).alive():
        return None
    testbed = by_name.attach(name)
    spec = testbed.spec
    if (
        line not in (None, spec.line)
        or spec.ends < request.nodes
        or not set(packages.labels) <= set(spec.packages)
    ):
        say(f"testbed {name} has another kernel line, fewer nodes or packages; making another")
        return None
    alone = request.needs_testbed_alone
    stack.enter_context(testbed.state.hold(shared=not alone))
    testbed.alive()
    if not testbed.state.prepared:
        raise UsageError(
            f"testbed {name} has no driver and no probes",
            cause="it was brought up with --bare, or its `rocelab up` was killed",
            action="Take it down with `rocelab down`, or choose another name with --name.",
        )
    if alone:
        testbed.take_over()
    if request.transport.roce == _V1:
        stack.enter_context(lease.hold(testbed.nodes))
        at_once(_note_default, machines(testbed.nodes))
    return testbed


def _note_default(machine: Node) -> None:
    lease.at_end(machine, roce_v1_default(machine))


def _make(
    request: Request, line: str, packages: Packages, say: Say, stack: ExitStack
) -> VirtualTestbed:
    state = State(f"exec-{os.getpid()}")
    stack.enter_context(state.hold())
    nodes = request.nodes
    testbed = by_name.up(
        state.name,
        provider=Provider.QEMU,
        line=line,
        mtu=MTU,
        nodes=nodes,
        switches=int(nodes > 2),
        packages=packages,
        payload=Payload.of_line(line),
        lifeline=True,
        say=say,
    )
    stack.callback(testbed.down)
    return testbed
