# SPDX-License-Identifier: GPL-2.0-or-later
"""Inventories of virtual machines that are given as SSH hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocelab.testbed.node.ssh_node import SshNode


def write(path: Path, hosts: Mapping[str, SshNode]) -> Path:
    """Write the inventory that gives each node the name it has in `hosts`; return its path."""
    path.write_text(
        "".join(
            f'[[host]]\nname = "{name}"\nhost = "127.0.0.1"\nport = {node.target.port}\n'
            f'user = "root"\nnetdev = "{node.link.netdev}"\n'
            f'identity = "{node.target.identity}"\nknown_hosts = "{node.target.known_hosts}"\n'
            for name, node in hosts.items()
        )
    )
    return path
