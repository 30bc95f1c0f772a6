# SPDX-License-Identifier: GPL-2.0-or-later
"""Shape the data link as a plan says, with netem on each data interface, and restore it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rocelab.errors import CellError, TestbedError
from rocelab.plans.plan import LinkPlan
from rocelab.testbed import tc_listing
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once

HANDLE = "4791:"
"""Marks our queueing disciplines; the number is the UDP port of RoCE v2."""
_DEFAULT_HANDLE = "0:"
"""The kernel's own default queueing disciplines have this handle."""
_QUEUE_PACKETS = 100_000
"""Longer than any burst of ours, so that netem drops only what the plan asks it to."""


def netem_parameters(link: LinkPlan) -> tuple[str, ...]:
    """Return netem's parameters for a link."""
    parameters: list[str] = ["limit", str(_QUEUE_PACKETS)]
    if link.delay_us:
        parameters += ["delay", f"{link.delay_us}us"]
    if link.loss_ppm:
        parameters += ["loss", f"{link.loss_ppm / 10_000:.4f}%"]
    if link.rate_mbit:
        parameters += ["rate", f"{link.rate_mbit}mbit"]
    return tuple(parameters)


@contextmanager
def shape(nodes: Sequence[Node], link: LinkPlan) -> Iterator[None]:
    """Shape what the data interfaces send while the context lasts; restore them on exit.

    Raises TestbedError when an interface has a queueing discipline that rocelab did not set.
    """
    if not link.is_shaped:
        yield
        return
    at_once(_refuse_foreign, nodes)
    try:
        at_once(lambda node: _shape(node, link), nodes)
        yield
    finally:
        at_once(_restore, nodes)


def drop_count(node: Node, *, is_shaped: bool) -> int | None:
    """Return how many packets a data interface's queueing discipline has dropped.

    The system's own drops, too: fq_codel what waits for 100 ms. None if it is not known.
    Raises CellError where the link is shaped, and the discipline is not ours any more.
    """
    try:
        root = _root(node)
    except CellError:
        if is_shaped:
            raise
        return None
    drops = root.get("drops")
    if is_shaped and (root.get("handle") != HANDLE or not isinstance(drops, int)):
        raise CellError(
            f"{node.link.netdev} on {node.name} is no longer shaped",
            cause="something changed its queueing discipline while the benchmark ran",
            action=f"On {node.name}: look at `tc qdisc show dev {node.link.netdev}`.",
        )
    return drops if isinstance(drops, int) else None


def _root(node: Node) -> dict[str, Any]:
    netdev = node.link.netdev
    listing = tc_listing.read(
        *(node, "qdisc", "show", "dev", netdev, "root"),
        subject=f"the queueing discipline of {netdev}",
    )
    return next((each for each in listing if each.get("root")), {})


def _refuse_foreign(node: Node) -> None:
    # one with our handle was left by a run that was killed
    handle = _root(node).get("handle", _DEFAULT_HANDLE)
    if handle not in (HANDLE, _DEFAULT_HANDLE):
        raise TestbedError(
            f"{node.link.netdev} on {node.name} has a queueing discipline that is not rocelab's",
            cause=f"`tc qdisc` shows handle {handle!a:.20}; shaping the link would replace it",
            action="Remove it, or remove [testbed.link] from the plan.",
        )


def _shape(node: Node, link: LinkPlan) -> None:
    place = ("dev", node.link.netdev, "root", "handle", HANDLE)
    node.root.run(("tc", "qdisc", "replace", *place, "netem", *netem_parameters(link)))


def _restore(node: Node) -> None:
    """Delete our queueing discipline; the kernel then puts its default back.

    A node that does not answer keeps ours: it is dead, or the next run that shapes replaces it.
    """
    with suppress(TestbedError, CellError):
        if _root(node).get("handle") == HANDLE:
            node.root.run(("tc", "qdisc", "del", "dev", node.link.netdev, "root"))
