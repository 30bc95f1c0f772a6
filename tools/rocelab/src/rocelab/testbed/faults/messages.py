# SPDX-License-Identifier: GPL-2.0-or-later
"""Number the messages of a client's requests, and place each packet in them by PSN."""

from __future__ import annotations

from dataclasses import dataclass

from rocelab.record.psn import behind
from rocelab.testbed.faults.roce_frame import Packet


@dataclass(frozen=True)
class Place:
    """A packet's message, from 1, its position in it, from 0, and whether it is the last one."""

    message: int
    packet: int
    is_last: bool


class Messages:
    """The requests of one queue pair, followed in the order in which they are sent."""

    def __init__(self) -> None:
        self._starts: list[int] = []

    def place(self, packet: Packet) -> Place | None:
        """Place a request, or the answer to one; None before the first request.

        A request that begins a message and is after all earlier ones begins a new message: one
        that is sent again is not.
        """
        new = not self._starts or behind(packet.psn, self._starts[-1]) > 0
        if packet.begins and not packet.is_response and new:
            self._starts.append(packet.psn)
        # the latest message that began at or before the PSN; nearly always among the last few
        for index in range(len(self._starts) - 1, -1, -1):
            distance = behind(packet.psn, self._starts[index])
            if distance >= 0:
                ends = packet.ends and not packet.is_read_request
                return Place(index + 1, distance, ends)
        return None
