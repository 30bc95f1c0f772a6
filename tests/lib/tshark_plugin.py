# SPDX-License-Identifier: GPL-2.0-or-later
"""tshark with the plugin, as a person who installed it has it: a file in the plugin folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "tools/wireshark/rocelab.lua"


class TsharkError(AssertionError):
    """tshark ended with an error, or Lua did."""


def run(home: Path, *words: str | Path) -> str:
    """What `tshark WORDS` prints; nothing of the person who runs the tests matters."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["tshark", *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )
    # it says so of a file that ends in the middle of a packet, after it has shown the others
    failed = done.returncode and "cut short" not in done.stderr
    if failed or "Lua" in done.stderr or ".lua:" in done.stderr:
        raise TsharkError(f"status {done.returncode}: {done.stderr}")
    return done.stdout


def place(home: Path, plugin: Path = PLUGIN) -> None:
    """The one file in the folder, and nothing else."""
    listed = run(home, "-G", "folders").splitlines()
    (line,) = (line for line in listed if line.startswith("Personal Lua Plugins"))
    folder = Path(line.partition(":")[2].strip())
    folder.mkdir(parents=True)
    (folder / "rocelab.lua").write_bytes(plugin.read_bytes())


def fields(
    home: Path, capture: Path, names: Sequence[str], *words: str
) -> dict[int, dict[str, str]]:
    """`tshark -T fields` of a capture, by frame number.

    Raises TsharkError where Lua failed on a packet.
    """
    wanted = ["frame.number", *names, "_ws.lua.error"]
    argv: list[str | Path] = ["-n", "-r", capture, *words, "-T", "fields"]
    for name in wanted:
        argv += ["-e", name]
    rows = {}
    for line in run(home, *argv).split("\n")[:-1]:
        row = dict(zip(wanted, line.split("\t"), strict=True))
        number = int(row.pop("frame.number"))
        if row.pop("_ws.lua.error"):
            raise TsharkError(f"Lua failed on frame {number} of {capture}")
        rows[number] = row
    return rows


def flag(text: str) -> str:
    """A boolean as tshark 4.0 prints it; later ones print words."""
    return {"True": "1", "False": "0"}.get(text, text)
