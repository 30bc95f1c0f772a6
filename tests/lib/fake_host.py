# SPDX-License-Identifier: GPL-2.0-or-later
"""A host of an inventory that is this machine: an `ssh` that runs the command here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

LINK = {
    "ifname": "eth1",
    "flags": ["BROADCAST", "UP"],
    "mtu": 9000,
    "address": "52:54:00:00:00:01",
    "addr_info": [
        {"family": "inet6", "local": "fe80::1", "scope": "link"},
        {"family": "inet", "local": "10.0.0.1", "scope": "global"},
    ],
}
"""What `ip -j addr show dev eth1` lists there."""
_SSH = """#!/bin/sh
# what is to run there is the last word
for word; do
    [ "$word" != -M ] || exit 0
    last=$word
done
PATH=$FAKE:$PATH exec sh -c "$last"
"""


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, programs: Mapping[str, str] | None = None
) -> Path:
    """Put that `ssh` on the PATH; return the folder of the host's `programs`, scripts of sh(1)."""
    there = folder / "there"
    there.mkdir()
    listing = {"ip": f"cat <<'E'\n{json.dumps([LINK])}\nE"}
    for name, script in {**listing, **(programs or {})}.items():
        (there / name).write_text(f"#!/bin/sh\n{script}\n")
        (there / name).chmod(0o755)
    ssh = folder / "ssh"
    ssh.write_text(_SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("FAKE", str(there))
    return there
