# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the eBPF probes on the nodes during one step."""
