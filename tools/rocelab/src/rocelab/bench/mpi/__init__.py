# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI benchmarks: what is run with which settings, and what its output says. Nothing here runs."""
