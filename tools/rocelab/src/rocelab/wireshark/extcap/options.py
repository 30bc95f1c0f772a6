# SPDX-License-Identifier: GPL-2.0-or-later
"""The options in Wireshark's dialog, and what they are to rxedump(8)."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from rocelab.errors import UsageError
from rocelab.wireshark.extcap.interfaces import Interface


@dataclass(frozen=True)
class Option:
    """One field of the dialog; its name is rxedump's long option."""

    name: str
    title: str
    kind: str
    """Of the extcap protocol: string, integer or selector."""
    help: str
    allowed: str
    """What its value must match."""
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()


OPTIONS = (
    Option(
        "device",
        "Device",
        "string",
        "Only this RDMA device; all, if empty",
        r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}",
    ),
    Option(
        "direction",
        "Direction",
        "selector",
        "Only sent, or only received packets",
        "tx|rx",
        choices=(("both", "sent and received"), ("tx", "sent"), ("rx", "received")),
    ),
    Option("qpn", "Queue pair", "string", "Only this local one, decimal or 0x…",
           "[0-9]{1,8}|0x[0-9A-Fa-f]{1,6}"),
    Option("opcode", "Opcodes", "string",
           "Only these: RC_RDMA_WRITE_ONLY, or a class: RDMA_WRITE; joined by commas",
           r"[A-Za-z0-9_]{1,40}(,[A-Za-z0-9_]{1,40}){0,63}"),
    Option("snapshot-length", "Snap length (bytes)", "string",
           "Keep so much of each frame; all, if empty. Wireshark dissects only whole ones",
           "[0-9]{1,6}"),
    Option("sample", "One packet in", "string",
           "Only one in so many, the same ones at both ends", "[0-9]{1,9}"),
)  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Take them on the command line, as Wireshark gives them."""
    for option in OPTIONS:
        parser.add_argument(f"--{option.name}", default="")


def sentences(interface: Interface) -> str:
    """What --extcap-config prints."""
    lines = []
    for number, option in enumerate(OPTIONS):
        if option.name == "device" and interface.device:
            continue
        lines.append(
            f"arg {{number={number}}}{{call=--{option.name}}}{{display={option.title}}}"
            f"{{tooltip={option.help}}}{{type={option.kind}}}"
        )
        lines += [
            f"value {{arg={number}}}{{value={value}}}{{display={title}}}"
            f"{{default={'true' if value == 'both' else 'false'}}}"
            for value, title in option.choices
        ]
    return "\n".join(lines)


def rxedump(arguments: argparse.Namespace, interface: Interface) -> list[str]:
    """The command on the interface's machine. Raises UsageError naming an option that cannot be."""
    argv = ["rxedump", "--write", "-"]
    if interface.node:
        argv += ["--node", interface.node]
    for option in OPTIONS:
        value = getattr(arguments, option.name.replace("-", "_")) or ""
        if option.name == "device":
            value = interface.device or value
        if value in {"", "both"}:
            continue
        if not re.fullmatch(option.allowed, value):
            raise UsageError(f"{option.title}: {value!r} cannot be used", cause=option.help)
        argv += [f"--{option.name}", value]
    return argv
