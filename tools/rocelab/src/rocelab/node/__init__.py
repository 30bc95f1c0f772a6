# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes: machines that benchmarks run on, whatever provider made them."""

from rocelab.node.base import Completed, DataLink, Node, Process

__all__ = ["Completed", "DataLink", "Node", "Process"]
