# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `ssh`: hosts of your own, named in an inventory."""
