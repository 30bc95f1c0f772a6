# SPDX-License-Identifier: GPL-2.0-or-later
"""The `--filter` language: `KEY=VALUE` terms separated by commas or blanks; all must hold.

`addr` and `time` select the packets to analyse. `qpn`, `conn` and `opcode` select only what is
listed: a tracker that sees some of a connection's packets would report gaps.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from rocelab._core import opcodes
from rocelab.errors import UsageError

_HELP = (
    "terms are addr=ADDRESS, addr=NETWORK/PREFIX or addr=lid:N, time=FROM..TO (seconds after the "
    "first packet), qpn=N, conn=N and opcode=NAME (RC_SEND_ONLY, or a part such as SEND or RC), "
    "separated by commas"
)

_MAPPED = bytes(10) + b"\xff\xff"
"""What precedes an IPv4 address that is mapped into IPv6 (RFC 4291, section 2.5.5.2)."""
_LID = b"\xff" + bytes(13)
"""What precedes a LID of native InfiniBand, as crate `roce` has it."""


@dataclass
class Select:
    """What `--filter` selects; empty lists select everything."""

    networks: list[tuple[bytes, int]] = field(default_factory=list)
    """Networks of either end: 16 bytes, IPv4 mapped into IPv6, and bits of prefix (128: a host)."""
    time_ns: tuple[int, int] | None = None
    """Start and end (exclusive), ns after the first packet."""
    qpns: list[int] = field(default_factory=list)
    opcodes: list[int] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)


def _unusable(term: str, why: str) -> UsageError:
    return UsageError(f"the filter term {term!r} cannot be used", cause=why, action=_HELP)


def _network(term: str, value: str) -> tuple[bytes, int]:
    kind, colon, lid = value.partition(":")
    if colon and kind == "lid":
        return _LID + _number(term, lid, 0xFFFF).to_bytes(2, "big"), 128
    try:
        # bits behind the prefix may be set, as `ip addr` prints them
        network = ipaddress.ip_interface(value).network
    except ValueError as error:
        raise _unusable(term, f"{value!r} is no IPv4 or IPv6 address or network") from error
    if network.version == 4:
        return _MAPPED + network.network_address.packed, 8 * len(_MAPPED) + network.prefixlen
    return network.network_address.packed, network.prefixlen


def _time(term: str, value: str) -> tuple[int, int]:
    before, dots, after = value.partition("..")
    try:
        start = float(before) if before else 0.0
        end = float(after) if after else float(1 << 31)
        bounds = round(start * 1e9), round(end * 1e9)
    except (ValueError, OverflowError):
        bounds = 0, 0
    if not dots or bounds[0] >= bounds[1]:
        raise _unusable(
            term, "a time is FROM..TO, in seconds, with FROM before TO; either may be left out"
        )
    return bounds


def _number(term: str, value: str, top: int) -> int:
    try:
        number = int(value, 0)
    except ValueError as error:
        raise _unusable(term, f"{value!r} is no number") from error
    if not 0 <= number <= top:
        raise _unusable(term, f"it must be between 0 and {top}")
    return number


def _opcodes(term: str, value: str) -> list[int]:
    text = value.upper()
    parts = re.compile(rf"(^|_){re.escape(text)}(_|$)")
    codes = [code for code, name in opcodes() if parts.search(name)]
    if not codes:
        raise _unusable(term, "no opcode has this name")
    return codes


def parse_filter(text: str) -> Select:
    """Parse a filter. Raises UsageError, which names the wrong term and says why."""
    select = Select()
    for term in re.split(r"[,\s]+", text.strip()):
        if not term:
            continue
        key, _, value = term.partition("=")
        match key:
            case "addr":
                select.networks.append(_network(term, value))
            case "time":
                select.time_ns = _time(term, value)
            case "qpn":
                select.qpns.append(_number(term, value, 0xFFFFFF))
            case "conn":
                select.connections.append(_number(term, value, 0xFFFFFFFF))
            case "opcode":
                select.opcodes += _opcodes(term, value)
            case _:
                raise _unusable(term, "the key must be addr, time, qpn, conn or opcode")
    return select
