# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that rocelab prints on a terminal."""
