# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of an A/B comparison: its run folders, the answer and the figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rocelab.conditions import explained
from rocelab.directory import Directory
from rocelab.record.folder import new_folder

ANSWER = "ab.json"
FIGURE = "ab.svg"


def create(out: Path) -> Path:
    """Make the folder of a new comparison, named by the time. Raises UsageError."""
    return new_folder(out, "ab")


def write(folder: Path, answer: Mapping[str, Any], figure: str) -> None:
    """Write answer and figure; an empty figure is left out. Raises UsageError."""
    text = json.dumps(answer, indent=1, allow_nan=False)
    try:
        with Directory.open(folder) as root:
            root.write(ANSWER, f"{text}\n".encode())
            if figure:
                root.write(FIGURE, figure.encode())
    except OSError as error:
        raise explained(
            error, f"cannot write into {folder}", action="Choose another folder with --out."
        ) from error
