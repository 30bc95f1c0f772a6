# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans, and the benchmarks that they name: commands and parsers; nothing here runs anything."""
