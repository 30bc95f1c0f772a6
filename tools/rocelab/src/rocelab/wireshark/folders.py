# SPDX-License-Identifier: GPL-2.0-or-later
"""Where this machine's Wireshark looks for a person's plugins and profiles."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rocelab.errors import MissingError

_TIMEOUT_S = 120


@dataclass(frozen=True)
class Folders:
    """The folders of one person, as `tshark -G folders` names them."""

    lua: Path
    config: Path
    extcap: Path
    """Where a person's extcaps go; of Wireshark before 4.2, where its later versions look."""
    system_extcap: Path | None = None
    """The only folder in which it looks for them, if it has none for a person."""


def report(what: str) -> str:
    """What `tshark -G WHAT` prints."""
    try:
        done = subprocess.run(
            ["tshark", "-G", what],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise MissingError(
            "tshark is not installed",
            cause="only Wireshark itself knows where its folders are",
            action="apt-get install tshark",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MissingError(
            f"tshark -G {what} did not end within {_TIMEOUT_S} s",
            action="run it by hand and see what it waits for",
        ) from error
    if done.returncode:
        raise MissingError(
            f"tshark -G {what} failed with status {done.returncode}",
            cause=done.stderr.strip()[-500:],
            action="mend the tshark that `command -v tshark` shows: " + str(shutil.which("tshark")),
        )
    return done.stdout


def folders() -> Folders:
    """Ask tshark. Raises MissingError if it is absent or does not name them."""
    named: dict[str, Path] = {}
    for line in report("folders").splitlines():
        name, colon, path = line.partition(":")
        if colon and path.strip():
            named.setdefault(name.strip(), Path(path.strip()))
    try:
        lua, config = named["Personal Lua Plugins"], named["Personal configuration"]
        personal = named.get("Personal Extcap path")
        system = None if personal else named["Extcap path"]
        # beside its plugins
        return Folders(lua, config, personal or lua.parent / "extcap", system)
    except KeyError as error:
        raise MissingError(
            f"tshark -G folders names no {error.args[0]!r} folder",
            cause="this tshark is older than 4.0, or was built without Lua",
            action="install a Wireshark of 4.0 or later with Lua (`tshark --version` shows both)",
        ) from error
