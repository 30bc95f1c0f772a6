# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of a comparison of drivers: its run folders, the answer and the figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rocelab.conditions import system_error
from rocelab.directory import Directory
from rocelab.record.folder import new_folder


def create(out: Path, name: str) -> Path:
    """Make the folder of a new comparison, named by the time and by `name`. Raises UsageError."""
    return new_folder(out, name)


def write(
    folder: Path, name: str, answer: Mapping[str, Any], figure: str, *, table: str = ""
) -> None:
    """Write NAME.json, NAME.svg and NAME.md; an empty one is left out. Raises UsageError."""
    text = json.dumps(answer, indent=1, allow_nan=False)
    try:
        with Directory.open(folder) as root:
            root.write(f"{name}.json", f"{text}\n".encode())
            for suffix, content in (("svg", figure), ("md", table)):
                if content:
                    root.write(f"{name}.{suffix}", content.encode())
    except OSError as error:
        raise system_error(
            error, f"cannot write into {folder}", action="Choose another folder with --out."
        ) from error
