# SPDX-License-Identifier: GPL-2.0-or-later
"""Texts that several sections of a capture's page share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rocelab import units

_MAX_CHARACTERS = 400
_MAX_FRAMES = 1000
"""Of one display filter: Wireshark takes more, but a person does not."""


def printable(text: str) -> str:
    """Untrusted text of bounded length with every control and format character made visible."""
    cut = text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in cut)


def end(side: dict[str, Any]) -> str:
    """Address and QP of one end of a connection."""
    qpn = "?" if side["qpn"] is None else side["qpn"]
    return f"{side['address']} qp {qpn}"


def ends(connection: dict[str, Any], way: str) -> tuple[str, str]:
    """Sender and receiver of a direction."""
    a, b = end(connection["a"]), end(connection["b"])
    return (a, b) if way == "a" else (b, a)


def network(connection: dict[str, Any]) -> str:
    """VLANs and tunnel of a connection."""
    tags = [f"VLAN {tag}" for tag in connection["vlans"]]
    tunnel = connection["tunnel"]
    return ", ".join(tags + ([f"{tunnel['kind']} {tunnel['id']}"] if tunnel else []))


def duration(value: int | None) -> str:
    """A time in ns as people read it."""
    return units.ABSENT if value is None else units.quantity(value, "ns")


def frame_filter(numbers: Iterable[int]) -> str:
    """Wireshark's display filter for these frames; the first thousand if there are more."""
    distinct = sorted(set(numbers))[:_MAX_FRAMES]
    return f"frame.number in {{{', '.join(_ranges(distinct))}}}" if distinct else units.ABSENT


def _ranges(numbers: list[int]) -> Iterator[str]:
    at = 0
    while at < len(numbers):
        last = at
        while last + 1 < len(numbers) and numbers[last + 1] == numbers[last] + 1:
            last += 1
        yield str(numbers[at]) if last == at else f"{numbers[at]}..{numbers[last]}"
        at = last + 1
