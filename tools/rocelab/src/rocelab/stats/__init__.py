# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics: pure functions over numbers."""
