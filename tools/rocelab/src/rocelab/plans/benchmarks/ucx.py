# SPDX-License-Identifier: GPL-2.0-or-later
"""What UCX needs over verbs, in MPI and by itself."""

from __future__ import annotations

OVER_IPV4 = ("UCX_UD_ETH_DGID_CHECK", "n")
"""A variable and its value. UCX's UD takes wc.sl for the type of a packet's network header, as mlx5
reports it, and drops what other devices receive over IPv4 (uct_ud_iface_check_grh)."""
