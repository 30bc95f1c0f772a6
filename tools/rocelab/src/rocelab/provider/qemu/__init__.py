# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `qemu`: nodes are virtual machines made here, from one shared read-only image."""
