# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a node's clock tells real time: what may stand beside what depends on it."""

from __future__ import annotations

REAL = frozenset({"kvm", "native"})
"""Accelerators under which time is time; every other one, known or not, is emulation."""


def is_emulated(accelerator: str) -> bool:
    """Say whether times under `accelerator` are no real times; an unknown one counts as such."""
    return accelerator not in REAL
