# SPDX-License-Identifier: GPL-2.0-or-later
"""A study's plan over a link with another MTU, for a run to set against the study's own."""

from __future__ import annotations

from dataclasses import replace

from rocelab.plans.plan import Plan


def at(plan: Plan, mtu: int) -> Plan:
    """Return the plan at this MTU of the link, in bytes; its name says which.

    RoCE's path MTU is the largest power of two that fits, up to 4096, except where a benchmark of
    the plan has one of its own.
    """
    if mtu == plan.testbed.mtu:
        return plan
    return replace(plan, name=f"{plan.name}-mtu{mtu}", testbed=replace(plan.testbed, mtu=mtu))
