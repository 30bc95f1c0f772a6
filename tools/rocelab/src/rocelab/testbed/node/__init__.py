# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes: the machines that benchmarks run on."""

from rocelab.testbed.node.interface import Completed, DataLink, Node, Printed, Process

__all__ = ["Completed", "DataLink", "Node", "Printed", "Process"]
