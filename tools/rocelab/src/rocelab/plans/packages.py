# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of Debian packages that nodes get in addition to what every node has."""

from __future__ import annotations

NAME = r"[a-z0-9][a-z0-9+.-]{0,98}[a-z0-9+.]"
"""As Debian's policy has it (5.6.7); apt-get would take a dash at the end for a removal."""
WORDS = "the name of a Debian package"
MAX_PACKAGES = 100
