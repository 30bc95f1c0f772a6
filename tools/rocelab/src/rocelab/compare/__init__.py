# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare two runs, cell by cell. Reads run folders only."""
