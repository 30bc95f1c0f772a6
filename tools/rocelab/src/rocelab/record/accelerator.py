# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a node's clock shows real time, which decides what may be compared."""

from __future__ import annotations

REAL = frozenset({"kvm", "native"})
"""Accelerators with real time; all others, known or not, count as emulation."""


def is_emulated(accelerator: str) -> bool:
    """Return whether times under `accelerator` are not real; so are those of unknown ones."""
    return accelerator not in REAL
