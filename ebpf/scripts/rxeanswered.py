# SPDX-License-Identifier: GPL-2.0-only
"""How long each request of this host waits for its answer: device, queue pair, PSN, ns.

    perf record -a -e rxe:rxe_tx_packet,rxe:rxe_rx_done -o perf.data -- COMMAND
    perf script -i perf.data -s rxeanswered.py

An answer names the last PSN that it acknowledges.
"""

from typing import Any

REQUESTER = 0
sent: dict[tuple[int, int, int], int] = {}


def trace_unhandled(event: str, context: object, fields: dict[str, Any], sample: object) -> None:
    """Handle an event, as perf calls it."""
    del context, sample
    key = fields["dev"], fields["qpn"], fields["psn"]
    now = fields["common_s"] * 10**9 + fields["common_ns"]
    if fields["role"] != REQUESTER:
        return
    if event == "rxe__rxe_tx_packet":
        sent[key] = now
    elif key in sent:
        print(*key, now - sent.pop(key), "ns")
