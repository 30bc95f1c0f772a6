# SPDX-License-Identifier: GPL-2.0-or-later
"""Carry out a plan on a testbed, and leave a run folder that needs neither."""
