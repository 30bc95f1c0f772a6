# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `ssh`: your own hosts, listed in an inventory."""
