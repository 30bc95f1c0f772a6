# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a plan on a testbed and write its run folder."""
