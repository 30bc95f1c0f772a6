# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runs side by side, cell by cell. Reads run folders only."""
