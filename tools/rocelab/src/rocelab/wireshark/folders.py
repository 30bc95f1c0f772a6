# SPDX-License-Identifier: GPL-2.0-or-later
"""Where this machine's Wireshark looks for a user's plugins and profiles."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rocelab.errors import MissingError

_TIMEOUT_S = 120


@dataclass(frozen=True)
class Folders:
    """One user's folders, as `tshark -G folders` names them."""

    lua: Path
    config: Path
    extcap: Path
    """The user's extcap folder; before Wireshark 4.2, the one that later versions use."""
    system_extcap: Path | None = None
    """The only extcap folder of a Wireshark that has none per user."""


def report(topic: str) -> str:
    """The output of `tshark -G WHAT`."""
    try:
        done = subprocess.run(
            ["tshark", "-G", topic],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise MissingError(
            "tshark is not installed",
            cause="rocelab asks tshark for Wireshark's folders",
            action="Run `apt-get install tshark`.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MissingError(
            f"tshark -G {topic} did not finish within {_TIMEOUT_S} s",
            cause="this machine is very busy, or a plugin of yours waits for something",
            action="Run it yourself to see what it waits for.",
        ) from error
    if done.returncode:
        raise MissingError(
            f"tshark -G {topic} failed with status {done.returncode}",
            cause=done.stderr.strip()[-500:],
            action=f"Repair or reinstall {shutil.which('tshark')}.",
        )
    return done.stdout


def folders() -> Folders:
    """Ask tshark for the folders. Raises MissingError if tshark or a folder is missing."""
    named: dict[str, Path] = {}
    for line in report("folders").splitlines():
        name, colon, path = line.partition(":")
        if colon and path.strip():
            named.setdefault(name.strip(), Path(path.strip()))
    try:
        lua, config = named["Personal Lua Plugins"], named["Personal configuration"]
        personal = named.get("Personal Extcap path")
        system = None if personal else named["Extcap path"]
        # later versions look next to the plugins
        return Folders(lua, config, personal or lua.parent / "extcap", system)
    except KeyError as error:
        raise MissingError(
            f"tshark -G folders names no {error.args[0]!r} folder",
            cause="this tshark is older than 4.0 or was built without Lua",
            action="Install Wireshark 4.0 or later with Lua (`tshark --version` shows both).",
        ) from error
