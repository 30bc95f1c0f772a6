# SPDX-License-Identifier: GPL-2.0-or-later
"""The largest testbed that a plan may ask for, the MTU of its link, and its repetitions."""

from __future__ import annotations

MAX_NODES, MAX_SWITCHES = 8, 8
MIN_MTU, MAX_MTU = 1280, 9000
"""Bytes. IPv6, and therefore link-local GIDs, needs at least 1280."""
MAX_REPETITIONS = 99
"""Names of cells have two digits for the repetition."""
