# SPDX-License-Identifier: GPL-2.0-or-later
"""rocelab: see where every microsecond of a Soft RoCE packet goes."""

__version__ = "0.1.0"
