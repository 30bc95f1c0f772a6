# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's events around a step with faults, as tracefs prints them."""

from __future__ import annotations

from rocelab.record import driver_trace

HEAD = """# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
"""
TRACE = (
    HEAD
    + """ ib_send_lat-412 [000] .....    71.250000: rxe_qp_state: dev=0 qpn=20 old=RTR new=RTS
          <idle>-0       [000] ..s1.    72.000100: rxe_timeout: dev=0 qpn=20 psn=7 retries=2
   kworker/u5:1-88       [001] .....    72.000200: rxe_retransmit: dev=0 qpn=20 reason=timeout
   kworker/u5:1-88       [001] .....    72.068000: rxe_retransmit: dev=0 qpn=20 reason=timeout
   kworker/u5:1-88       [001] .....    72.136500: rxe_qp_state: dev=0 qpn=20 old=RTS new=ERR
"""
)


def test_the_wait_after_the_last_try() -> None:
    assert driver_trace.gave_up_after_ns(TRACE) == 68_500_000


def test_events_have_times_and_fields() -> None:
    first, *_, last = driver_trace.parse(TRACE)
    assert (first.time_ns, first.name) == (71_250_000_000, "rxe_qp_state")
    assert last.fields["new"] == "ERR"


def test_a_connection_that_did_not_end_has_none() -> None:
    for text in ("", HEAD, TRACE.replace("new=ERR", "new=SQD"), TRACE.replace("retransmit", "nak")):
        assert driver_trace.gave_up_after_ns(text) is None
