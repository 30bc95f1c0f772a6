# SPDX-License-Identifier: GPL-2.0-or-later
"""The version of rocelab."""

from __future__ import annotations

VERSION = "0.1.0"
