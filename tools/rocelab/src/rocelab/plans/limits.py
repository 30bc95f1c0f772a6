# SPDX-License-Identifier: GPL-2.0-or-later
"""The largest testbed that a plan may ask for."""

from __future__ import annotations

MOST_NODES, MOST_SWITCHES = 8, 8
