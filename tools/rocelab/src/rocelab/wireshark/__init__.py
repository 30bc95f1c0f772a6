# SPDX-License-Identifier: GPL-2.0-or-later
"""Install rocelab's plugin, profile and extcap into Wireshark's folders."""
