# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of connections fits the terminal, and cuts no number."""

from __future__ import annotations

import pytest

from corpus import CAPTURES
from rocelab import capture
from rocelab.terminal import capture_tables, console

NAMES = ("rc-v2-ipv4.pcap", "rc-v2-ipv6.pcap", "infiniband-erf.pcap", "case-tunnels.pcap")


@pytest.mark.parametrize("columns", [120, 80, 76, 60, 50])
@pytest.mark.parametrize("name", NAMES)
def test_it_fits(name: str, columns: int) -> None:
    result = capture.analyze([str(CAPTURES / name)]).result
    out = console.out()
    with out.capture() as printed:
        out.print(capture_tables.connections(result, columns), width=columns)
    text = printed.get()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= columns
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    # an IPv6 address may be folded, but not where it has a line of its own
    narrow = [f"{row['id']} a: {row['a']['address']}" in text for row in result["connections"]]
    assert all(narrow) if columns < 78 else not any(narrow)
