# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program needs to know of its node's end of the link, as variables and in its words."""

from __future__ import annotations

from collections.abc import Mapping

from rocelab.measure.command.request import PEER
from rocelab.plans.benchmarks.tool import End
from rocelab.testbed.node import Node

_IN_WORDS = {
    "device": "ROCELAB_DEVICE",
    "gid": "ROCELAB_GID_INDEX",
    "address": "ROCELAB_ADDRESS",
    "netdev": "ROCELAB_NETDEV",
    "peer": PEER,
}
"""What stands for a variable's value in the words of a command."""


def variables(node: Node, end: End, peer: Node | None) -> dict[str, str]:
    """Return the variables of a command on `node`; `end` is that of the transport."""
    values = {
        "ROCELAB_ADDRESS": end.ipv4,
        **({PEER: peer.link.ipv4} if peer else {}),
        "ROCELAB_NETDEV": node.link.netdev,
        "ROCELAB_MTU": str(node.link.mtu),
    }
    if end.device:
        values |= {
            "ROCELAB_DEVICE": end.device,
            "ROCELAB_PORT": str(end.port),
            "ROCELAB_GID_INDEX": str(end.gid_index),
        }
    return values


def in_words(values: Mapping[str, str]) -> dict[str, str]:
    """Return what stands for a variable's value in the words of a command, where it has one."""
    return {word: values[name] for word, name in _IN_WORDS.items() if name in values}
