# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that dumpcap and tcpdump give the files of one long capture.

dumpcap writes PREFIX_00001_20261129120000.pcapng, or the time before the number. tcpdump appends
numbers to the name (-C; with -W they have leading zeros and begin again), or the name has a time
(-G).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_DIGITS = re.compile(r"\d+", re.ASCII)
_COUNTED = re.compile(r"\d+$|\d{4,}|(?<![A-Za-z\d])\d{2,}", re.ASCII)
"""A number at the end, or the digits of a time; not those of eth0, ens192 and mlx5_0."""
_DUMPCAP = re.compile(r"_(\d{5,})_\d{14}(?=\.|$)|_\d{14}_(\d{5,})(?=\.|$)", re.ASCII)
_COMPRESSED = (".gz", ".zst", ".lz4")
_MAX_DIGITS = 32
"""More are no number of a file."""


def plain(name: str) -> str:
    """The name without what a compressor adds (tcpdump -z)."""
    return next((name.removesuffix(end) for end in _COMPRESSED if name.endswith(end)), name)


def series(name: str) -> str:
    """What the names of all files of one capture have in common."""
    # the first file of tcpdump -C has no number
    return _COUNTED.sub("#", plain(name)).removesuffix("#")


def are_one_series(names: Sequence[str]) -> bool:
    """Whether these are the files of one long capture, by their names."""
    return len({series(name) for name in names}) == 1


def order(name: str) -> list[tuple[str, int]]:
    """A key by which names are in the order of their numbers."""
    name = plain(name)
    texts, numbers = _DIGITS.split(name), _DIGITS.findall(name)
    values = [int(number[:_MAX_DIGITS]) for number in numbers]
    return list(zip(texts, [*values, -1], strict=True))


def number(name: str) -> int | None:
    """The number that dumpcap gave the file, which it never gives again."""
    match = _DUMPCAP.search(name)
    return int((match[1] or match[2])[:_MAX_DIGITS]) if match else None
