# SPDX-License-Identifier: GPL-2.0-or-later
"""Rate, delay and loss of a plan's link: netem on each data interface, and put back afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rocelab.bench.plan import LinkPlan
from rocelab.errors import CellError, TestbedError
from rocelab.node import Node
from rocelab.node.parallel import at_once

_HANDLE = "4791:"
"""Ours; the UDP port of RoCE v2, easily recognised."""
_DEFAULT_HANDLE = "0:"
"""What the kernel gives to a discipline that nobody asked for."""
_QUEUE_PACKETS = 100_000
"""Longer than any burst of ours: what is lost is what the plan says."""


def words(link: LinkPlan) -> tuple[str, ...]:
    """netem's parameters for a link."""
    said: list[str] = ["limit", str(_QUEUE_PACKETS)]
    if link.delay_us:
        said += ["delay", f"{link.delay_us}us"]
    if link.loss_ppm:
        said += ["loss", f"{link.loss_ppm / 10_000:.4f}%"]
    if link.rate_mbit:
        said += ["rate", f"{link.rate_mbit}mbit"]
    return tuple(said)


@contextmanager
def shaped(nodes: Sequence[Node], link: LinkPlan) -> Iterator[None]:
    """The data interfaces send as `link` says while the context lasts; then as before.

    Raises TestbedError where an interface has a queueing discipline of somebody's.
    """
    if not link.is_shaped:
        yield
        return
    at_once(_refuse_strange, nodes)
    try:
        at_once(lambda node: _shape(node, link), nodes)
        yield
    finally:
        at_once(_put_back, nodes)


def dropped(node: Node) -> int:
    """Packets that a shaped link has thrown away at a node, so far. Raises CellError."""
    root = _root(node)
    drops = root.get("drops")
    if root.get("handle") != _HANDLE or not isinstance(drops, int):
        raise CellError(
            f"{node.link.netdev} of {node.name} is not shaped any more",
            cause="somebody changed its queueing discipline while the benchmark ran",
            action=f"On {node.name}: `tc qdisc show dev {node.link.netdev}`.",
        )
    return drops


def _root(node: Node) -> dict[str, Any]:
    netdev = node.link.netdev
    listing = node.run(("tc", "-s", "-j", "qdisc", "show", "dev", netdev, "root"), check=False)
    try:
        found = [each for each in json.loads(listing.stdout) if each.get("root")]
        return dict(found[0]) if found else {}
    except (ValueError, TypeError, AttributeError) as error:
        raise CellError(
            f"{node.name} does not tell of the queueing discipline of {netdev}",
            cause=listing.stderr.strip()[-200:] or f"tc printed {listing.stdout!a:.80}",
        ) from error


def _refuse_strange(node: Node) -> None:
    # ours: left by a run that was killed
    handle = _root(node).get("handle", _DEFAULT_HANDLE)
    if handle not in (_HANDLE, _DEFAULT_HANDLE):
        raise TestbedError(
            f"{node.link.netdev} of {node.name} has a queueing discipline of its own",
            cause=f"`tc qdisc` shows {handle!a:.20}; a plan that shapes the link would lose it",
            action="take it away, or take [testbed.link] out of the plan",
        )


def _shape(node: Node, link: LinkPlan) -> None:
    there = ("dev", node.link.netdev, "root", "handle", _HANDLE)
    node.root.run(("tc", "qdisc", "replace", *there, "netem", *words(link)))


def _put_back(node: Node) -> None:
    """Without a discipline of ours the kernel gives the interface its default again.

    A node that does not answer keeps it: dead, or to be found by the next run that shapes.
    """
    with suppress(TestbedError, CellError):
        if _root(node).get("handle") == _HANDLE:
            node.root.run(("tc", "qdisc", "del", "dev", node.link.netdev, "root"))
