# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `qemu`: nodes are virtual machines that share one read-only image."""
