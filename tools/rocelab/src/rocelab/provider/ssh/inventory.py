# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts of your own, from a TOML file (docs/formats/inventory.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocelab.strict import Table, read_toml

# What may stand on a command line of ssh(1) or ip(8): no option, no blank, no path.
_HOST = r"[A-Za-z0-9][A-Za-z0-9._:%-]{0,254}"
_USER = r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"
_NAME = r"[a-z0-9][a-z0-9-]{0,30}"
_NETDEV = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}"  # IFNAMSIZ is 16, with the NUL
_DEVICE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"  # IB_DEVICE_NAME_MAX is 64
_PATH = r"(~/|/)[^\x00-\x1f]{1,4094}"


@dataclass(frozen=True)
class Host:
    """A machine that SSH reaches."""

    name: str
    """Name of the node, also in files."""
    host: str
    """Name or address to connect to, or an alias in ~/.ssh/config."""
    netdev: str
    """The data interface; never the one that SSH comes by."""
    user: str | None = None
    """None: as ssh(1) decides."""
    port: int | None = None
    verbs: str | None = None
    """A verbs device that is not rxe; None: the one on `netdev`, if any."""
    identity: Path | None = None
    """File of the private key; None: as ssh(1) decides."""
    known_hosts: Path | None = None
    """File of host keys; None: as ssh(1) decides."""


def default_path() -> Path:
    """Where an inventory is looked for: $XDG_CONFIG_HOME/rocelab/hosts.toml."""
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "rocelab/hosts.toml"


def load(path: Path) -> tuple[Host, ...]:
    """The hosts of an inventory, in its order. Raises UsageError naming file, key and value."""
    values = read_toml(
        path, what="inventory", action="docs/howto/hosts.md says how to write an inventory."
    )
    return from_dict(values, str(path))


def from_dict(values: Mapping[str, Any], source: str) -> tuple[Host, ...]:
    """Check an inventory's tables; `source` names it in messages. Raises UsageError."""
    top = Table(values, source)
    tables = top.tables("host")
    top.done()
    hosts: list[Host] = []
    for number, table in enumerate(tables, start=1):
        host = _host(table, f"n{number}")
        if any(host.name == other.name for other in hosts):
            table.fail("name", f"{host.name!r} is there twice")
        hosts.append(host)
    return tuple(hosts)


def _host(table: Table, name: str) -> Host:
    path = "a path from / or ~"
    host = Host(
        name=table.matching("name", _NAME, "a name of a-z, 0-9 and -", default=name),
        host=table.matching("host", _HOST, "a host's name or address"),
        netdev=table.matching("netdev", _NETDEV, "an interface's name"),
        user=table.matching("user", _USER, "a user's name") if table.has("user") else None,
        port=table.integer("port", low=1, high=65535) if table.has("port") else None,
        verbs=table.matching("verbs", _DEVICE, "a device's name") if table.has("verbs") else None,
        identity=_path(table, "identity", path),
        known_hosts=_path(table, "known_hosts", path),
    )
    table.done()
    return host


def _path(table: Table, key: str, words: str) -> Path | None:
    return Path(table.matching(key, _PATH, words)).expanduser() if table.has(key) else None
