# SPDX-License-Identifier: GPL-2.0-or-later
"""What rocelab adds to Wireshark: a plugin and a profile, and how they get into its folders."""
