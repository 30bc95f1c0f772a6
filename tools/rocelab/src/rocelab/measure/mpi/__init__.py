# SPDX-License-Identifier: GPL-2.0-or-later
"""Run MPI benchmarks on a testbed's nodes."""
