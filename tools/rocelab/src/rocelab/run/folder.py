# SPDX-License-Identifier: GPL-2.0-or-later
"""A run folder on disk (docs/formats/run.md): whole cells only, run.json never half written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocelab.bench import plan_file
from rocelab.bench.plan import Cell, Plan
from rocelab.errors import UsageError

RUN_SCHEMA = "rocelab.run/1"
CELL_SCHEMA = "rocelab.cell/1"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def create(cls, out_dir: Path, plan: Plan) -> RunFolder:
        """Make the folder of a new run, named by the time and the plan. Raises UsageError."""
        try:
            out_dir.mkdir(parents=True, exist_ok=True)
            path = _unused(out_dir, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{plan.name}")
            (path / "cells").mkdir()
        except OSError as error:
            raise UsageError(
                f"cannot make a run folder in {out_dir}: {error.strerror}",
                action="Choose another folder with --out.",
            ) from error
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of an earlier run, and sweep away what an interruption left.

        Raises UsageError when it is none.
        """
        folder = cls(path.resolve())
        folder.meta()
        (folder.path / "cells").mkdir(exist_ok=True)
        folder.sweep()
        return folder

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.name

    def plan(self) -> Plan:
        """The plan that the run carries out: the one in run.json, whatever a file says now."""
        plan = self.meta().get("plan")
        return plan_file.from_dict(plan if isinstance(plan, dict) else {}, f"{self.name}/run.json")

    def meta(self) -> dict[str, Any]:
        """run.json. Raises UsageError when there is none of this version."""
        try:
            meta = json.loads((self.path / "run.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{self.path} is not a run folder",
                cause="it holds no readable run.json",
                action="Give the folder that `rocelab run` printed.",
            ) from error
        if not isinstance(meta, dict) or meta.get("schema") != RUN_SCHEMA:
            raise UsageError(
                f"{self.path} was written by another version of rocelab",
                cause=f"its run.json does not say {RUN_SCHEMA}",
            )
        return meta

    def write_meta(self, meta: Mapping[str, Any]) -> None:
        """Replace run.json."""
        write_json(self.path / "run.json", {"schema": RUN_SCHEMA, **meta})

    def cell(self, name: str) -> Path:
        """Where a finished cell lies."""
        return self.path / "cells" / name

    def record(self, name: str) -> dict[str, Any] | None:
        """A finished cell's cell.json, or None when there is none of this version."""
        try:
            record = json.loads((self.cell(name) / "cell.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        good = isinstance(record, dict) and record.get("schema") == CELL_SCHEMA
        return record if good else None

    def begin(self, cell: Cell) -> Path:
        """An empty folder for a cell that begins; nobody takes it for a cell yet."""
        part = self.cell(f".{cell.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        return part

    def commit(self, cell: Cell, record: Mapping[str, Any]) -> None:
        """The cell is done: it appears whole, in place of an earlier attempt."""
        part, place = self.cell(f".{cell.name}.part"), self.cell(cell.name)
        write_json(part / "cell.json", {"schema": CELL_SCHEMA, **record})
        if place.exists():
            old = self.cell(f".{cell.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
            part.rename(place)
            shutil.rmtree(old)
        else:
            part.rename(place)

    def sweep(self) -> None:
        """Take away what an interruption left, wherever in a cell it came."""
        for left in (self.path / "cells").glob(".*"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()


def plan_of(run_dir: Path) -> Plan:
    """The plan of an earlier run, for `--resume`. Raises UsageError."""
    return RunFolder(run_dir).plan()


def now() -> str:
    """The time as run folders write it: UTC, ISO 8601, whole seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that is there either whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _unused(out_dir: Path, name: str) -> Path:
    """Make the folder `name`, or `name-2`, … when another run of this second has taken it."""
    for number in range(1, 100):
        path = out_dir / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path.resolve()
    raise FileExistsError(17, "a hundred runs began in this second", name)
