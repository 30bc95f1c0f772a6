# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `veth`: both ends on one machine, over a veth pair in one network namespace."""
