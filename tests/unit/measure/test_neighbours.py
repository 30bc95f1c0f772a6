# SPDX-License-Identifier: GPL-2.0-or-later
"""Each node asks for the others' link-local addresses, and for no others."""

from __future__ import annotations

from typing import Any, cast

from rocelab.measure.mpi import neighbours
from rocelab.plans.benchmarks.mpi.recipe import Place
from rocelab.testbed.node import Node


class Asking:
    """Notes what it is to run."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def run(self, argv: tuple[str, ...], **_: Any) -> None:
        self.asked.append(argv)


def asked(*places: Place) -> list[list[tuple[str, ...]]]:
    nodes = [Asking() for _ in places]
    neighbours.find([cast("Node", node) for node in nodes], places)
    return [[argv[4:] for argv in node.asked] for node in nodes]


def place(name: str, link_local: str) -> Place:
    return Place(name, "data0", "rxe0", 1, 1, link_local)


def test_each_asks_for_the_others() -> None:
    first, second, third = (place(f"n{i}", f"fe80::{i}") for i in (1, 2, 3))
    assert asked(first, second, third) == [
        [("data0", "20", "fe80::2", "fe80::3")],
        [("data0", "20", "fe80::1", "fe80::3")],
        [("data0", "20", "fe80::1", "fe80::2")],
    ]


def test_other_addresses_are_not_asked_for() -> None:
    assert asked(place("n1", ""), place("n2", "")) == [[], []]
    assert asked(Place("n1", "eth0"), Place("n2", "eth0")) == [[], []]
