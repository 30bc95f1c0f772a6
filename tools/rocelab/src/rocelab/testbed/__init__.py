# SPDX-License-Identifier: GPL-2.0-or-later
"""Testbeds: the machines that benchmarks run on, and how each provider sets them up."""
