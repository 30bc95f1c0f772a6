# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the inventory: your own hosts, in a TOML file (docs/formats/inventory.md)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from rocelab.conditions import home, xdg_folder
from rocelab.plans.catalog import TRANSPORTS, Transport
from rocelab.strict import Table, quote, read_toml

# These values go on command lines of ssh(1) and ip(8): no options, blanks or paths.
_HOST = r"[A-Za-z0-9][A-Za-z0-9._:%-]{0,254}"
_USER = r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"
_NAME = r"[a-z0-9][a-z0-9-]{0,30}"
_NETDEV = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}"  # IFNAMSIZ is 16, with the NUL
_DEVICE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"  # IB_DEVICE_NAME_MAX is 64
_PATH = r"(~/|/)[^\x00-\x1f]{1,4094}"
_FOLDER = r"/[^\x00-\x1f:]{1,1023}"  # of PATH, which divides at colons
_MODULE = r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,127}"


def key_of(transport: Transport) -> str:
    """Return the key under which a host says what a transport uses."""
    return "rxe" if transport.is_rxe else transport.name


TRANSPORT_KEYS = tuple(dict.fromkeys(map(key_of, TRANSPORTS.values())))
"""Keys of a host's `transport`; `rxe` is for both versions."""


@dataclass(frozen=True)
class Uses:
    """What a transport uses on a host, where that is not what the host's other keys say."""

    netdev: str | None = None
    device: str | None = None
    port: int | None = None
    """None: any port that fits."""


@dataclass(frozen=True)
class Host:
    """A host of the inventory."""

    name: str
    """Name of the node, in output and in files."""
    host: str
    """Name or address to connect to, or an alias in ~/.ssh/config."""
    netdev: str
    """The data interface; never the one that SSH uses."""
    user: str | None = None
    """None: ssh(1) decides."""
    port: int | None = None
    """None: ssh(1) decides."""
    verbs: str | None = None
    """A verbs device that is not rxe; None: the one on `netdev`, if any."""
    identity: Path | None = None
    """File of the private key; None: ssh(1) decides."""
    known_hosts: Path | None = None
    """File of host keys; None: ssh(1) decides."""
    control: tuple[str, ...] = ()
    """Networks (CIDR) over which MPI's daemons talk, the same for all hosts; empty: chosen."""
    transports: Mapping[str, Uses] = field(default_factory=dict)
    """By key of `TRANSPORT_KEYS`."""
    root: bool = True
    """Whether to become root there, with sudo(8); without it some plans cannot run."""
    path: tuple[str, ...] = ()
    """Folders in which programs are looked for first."""
    modules: tuple[str, ...] = ()
    """Environment modules to load for all commands but root's."""


def default_path() -> Path:
    """Return the inventory's default path, $XDG_CONFIG_HOME/rocelab/hosts.toml."""
    return (xdg_folder("XDG_CONFIG_HOME") or home() / ".config") / "rocelab/hosts.toml"


def load(path: Path) -> tuple[Host, ...]:
    """Read the hosts of an inventory, in order. Raises UsageError naming file, key and value."""
    values = read_toml(
        path, kind="inventory", action="See docs/howto/hosts.md for how to write an inventory."
    )
    return from_dict(values, str(path))


def from_dict(values: Mapping[str, Any], source: str) -> tuple[Host, ...]:
    """Check an inventory's tables; `source` names it in messages. Raises UsageError."""
    top = Table(values, source)
    tables = top.tables("host")
    control = _networks(top) if top.has("control") else ()
    top.done()
    hosts: list[Host] = []
    for number, table in enumerate(tables, start=1):
        host = _host(table, f"n{number}", control)
        if any(host.name == other.name for other in hosts):
            table.fail(
                "name", f"{host.name!r} appears twice", cause="a host was copied with its name"
            )
        hosts.append(host)
    return tuple(hosts)


def inventory_text(hosts: Sequence[Host]) -> str:
    """Return an inventory of hosts of which only names and interfaces are known.

    Raises UsageError if it could not be read again.
    """
    text = "".join(
        f'[[host]]\nname = "{host.name}"\nhost = "{host.host}"\n'
        f"netdev = {json.dumps(host.netdev)}\n"
        for host in hosts
    )
    from_dict(tomllib.loads(text), "the inventory to be written")
    return text


def _host(table: Table, name: str, control: tuple[str, ...]) -> Host:
    path = "a path that starts with / or ~/"
    host = Host(
        name=table.matching("name", _NAME, "a name made of a-z, 0-9 and -", default=name),
        host=table.matching("host", _HOST, "a host name or address"),
        netdev=table.matching("netdev", _NETDEV, "an interface name"),
        user=table.matching("user", _USER, "a user name") if table.has("user") else None,
        port=table.integer("port", low=1, high=65535) if table.has("port") else None,
        verbs=table.matching("verbs", _DEVICE, "a device name") if table.has("verbs") else None,
        identity=_path(table, "identity", path),
        known_hosts=_path(table, "known_hosts", path),
        control=control,
        transports=_transports(table) if table.has("transport") else {},
        root=table.flag("root", default=True),
        path=table.texts("path", _FOLDER, "a folder's path that starts with / and has no colon"),
        modules=table.texts("modules", _MODULE, "a module's name"),
    )
    table.done()
    return host


def _transports(host: Table) -> dict[str, Uses]:
    tables = host.table("transport")
    uses = {key: _uses(tables.table(key)) for key in TRANSPORT_KEYS if tables.has(key)}
    tables.done()
    return uses


def _uses(table: Table) -> Uses:
    uses = Uses(
        table.matching("netdev", _NETDEV, "an interface name") if table.has("netdev") else None,
        table.matching("device", _DEVICE, "a device name") if table.has("device") else None,
        table.integer("port", low=1, high=255) if table.has("port") else None,
    )
    table.done()
    return uses


def _networks(top: Table) -> tuple[str, ...]:
    networks = []
    for text in top.texts("control"):
        try:
            networks.append(str(ip_network(text)))
        except ValueError:
            top.fail(
                "control",
                f"{quote(text)} is not a network such as 192.0.2.0/24",
                cause="it is the address of a host, or a name",
            )
    return tuple(networks)


def _path(table: Table, key: str, words: str) -> Path | None:
    if not table.has(key):
        return None
    path = table.matching(key, _PATH, words)
    return home() / path[2:] if path.startswith("~/") else Path(path)
