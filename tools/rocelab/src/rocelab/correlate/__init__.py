# SPDX-License-Identifier: GPL-2.0-or-later
"""Correlate the drivers' records, the capture between them and the measured latency.

>>> from rocelab import correlate
>>> joined = correlate.join(wire, [n1, n2])  # doctest: +SKIP
>>> joined.packets.filter(pl.col("received") != "matched")  # doctest: +SKIP
"""

from rocelab.correlate.joined import Joined, join
from rocelab.correlate.messages import messages
from rocelab.correlate.traced_captures import find
from rocelab.record.captures import Place

__all__ = ["Joined", "Place", "find", "join", "messages"]
