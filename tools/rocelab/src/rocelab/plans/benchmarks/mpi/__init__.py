# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI benchmarks: commands, settings, and parsers of their output."""
