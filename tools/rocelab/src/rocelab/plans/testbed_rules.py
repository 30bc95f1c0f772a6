# SPDX-License-Identifier: GPL-2.0-or-later
"""What a testbed cannot be: the rules for a plan file, and for a plan that an option moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rocelab.plans import fault_means, packages
from rocelab.plans.catalog import Provider
from rocelab.plans.plan import TestbedPlan


@dataclass(frozen=True)
class Refusal:
    """Why a testbed cannot be: a key of [testbed], and what to write instead."""

    key: str
    why: str
    action: str


def refusal(testbed: TestbedPlan) -> Refusal | None:
    """Return the first rule that a testbed breaks; None if there can be such a testbed."""
    return next(_refusals(testbed), None)


def _refusals(testbed: TestbedPlan) -> Iterator[Refusal]:
    provider = testbed.provider
    shape = (provider, testbed.nodes, testbed.switches)
    if refusal := fault_means.refusal(testbed.faults, *shape):
        key = f"faults.{refusal.fault}.{refusal.key}"
        yield Refusal(key, f"not with provider {provider}: {refusal.why}", refusal.action)
    if testbed.faults and testbed.link.is_shaped:
        yield Refusal(
            "faults",
            "a shaped link drops or delays packets before a fault can meet them",
            "Remove [testbed.link], or the faults.",
        )
    if testbed.icount and provider.own_hosts:
        yield Refusal(
            "icount",
            "hosts cannot count their instructions, only emulated machines can",
            'Set provider = "qemu" or "veth", or remove icount.',
        )
    if testbed.lockstep and not testbed.may_lockstep:
        yield Refusal(
            "lockstep",
            "only two virtual machines of provider qemu without a switch, faults or shaping run "
            "in lockstep",
            'Set provider = "qemu" with two nodes, or remove lockstep.',
        )
    if testbed.native and (provider != Provider.VETH or testbed.icount):
        yield Refusal(
            "native",
            "only provider veth can run on this machine itself, and only without icount",
            'Set provider = "veth", and remove icount.',
        )
    if testbed.fresh and (provider.own_hosts or testbed.native):
        yield Refusal(
            "fresh",
            "rocelab boots only virtual machines",
            'Set provider = "qemu", or "veth" without native, or remove fresh.',
        )
    if testbed.packages and (provider.own_hosts or testbed.native):
        yield Refusal(
            "packages",
            "rocelab installs nothing on hosts of your own",
            "Install them there, and remove packages.",
        )
    if len(testbed.packages) > packages.MAX_PACKAGES:
        yield Refusal("packages", f"there are more than {packages.MAX_PACKAGES}", "Name fewer.")
    if testbed.lacks_switch:
        yield Refusal(
            "nodes",
            f"a link has two ends, and {testbed.nodes} nodes need a switch",
            "Set switches = 1.",
        )
