# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the data link between two virtual machines, exact to the packet."""
