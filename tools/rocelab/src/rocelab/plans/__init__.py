# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans: the plan file, the catalogue of benchmarks, their commands and parsers. Nothing runs."""
