# SPDX-License-Identifier: GPL-2.0-or-later
"""A run folder on disk (docs/formats/run.md): read, written and tidied here and nowhere else.

Cells appear whole, files are never half written. The folder may come from a stranger, so every
access goes through `rocelab.directory`: no link in it is followed, and only regular files count.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocelab import json_text, limits
from rocelab.conditions import lack, system_error
from rocelab.directory import Directory
from rocelab.errors import RocelabError, UsageError
from rocelab.plans import plan_file
from rocelab.plans.plan import Cell, Plan
from rocelab.record import layout
from rocelab.strict import quote

_KILLED = "its process was killed, or the machine went down"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def create(cls, out_dir: Path, plan: Plan, meta: Mapping[str, Any]) -> RunFolder:
        """Create the folder of a new run, named by the time and the plan, with its run.json.

        Raises UsageError.
        """
        folder = cls(new_folder(out_dir, plan.name))
        try:
            with Directory.open(folder.path) as root, root.folder(layout.CELLS, make=True):
                folder.write_meta(meta)
        except BaseException as error:
            # without run.json nothing could continue it
            with suppress(OSError), Directory.open(folder.path.parent) as parent:
                parent.remove(folder.name)
            if isinstance(error, OSError):
                raise _no_run_folder(out_dir, error) from error
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of an earlier run, and remove what an interruption left.

        Raises UsageError when it is not a run's.
        """
        folder = cls(path.resolve())
        if folder.meta().get("status") == "running":
            raise _run_in_progress(folder.path)
        try:
            with Directory.open(folder.path) as root, root.folder(layout.CELLS, make=True):
                root.remove_parts()
            folder.sweep()
        except OSError as error:
            raise system_error(
                error, f"{path} cannot be continued", action="Start a new run."
            ) from error
        return folder

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.resolve().name

    def plan(self) -> Plan:
        """The plan that the run carries out: the one in run.json. Raises UsageError."""
        plan = self.meta().get("plan")
        return plan_file.from_dict(plan if isinstance(plan, dict) else {}, f"{self.name}/run.json")

    def meta(self) -> dict[str, Any]:
        """run.json. Raises UsageError when there is none of this version."""
        try:
            with Directory.open(self.path) as root:
                meta = json_text.parse(root.read(layout.RUN, limit=limits.MAX_JSON_BYTES))
        except (OSError, ValueError) as error:
            raise lack(error, f"cannot read {self.path}") or UsageError(
                f"{self.path} is not a run folder",
                cause=f"it holds no readable run.json: {_why(error)}",
                action="Give the folder that `rocelab run` printed.",
            ) from error
        if meta.get("status") == "running" and not self._is_held():
            meta |= {"status": "killed", "reason": _KILLED}
        planned = meta.get("cells")
        _check_number(self.path, len(planned) if isinstance(planned, list) else 0)
        if (schema := meta.get("schema")) != layout.RUN_SCHEMA:
            raise UsageError(
                f"{self.path} was written by another version of rocelab",
                cause=f"its run.json has schema {quote(schema)}, not {layout.RUN_SCHEMA!r}",
                action="Use that version, or run the plan again.",
            )
        return meta

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the run while it goes on. Raises UsageError when another process does."""
        with Directory.open(self.path) as root:
            if not root.lock():
                raise _run_in_progress(self.path)
            yield

    def _is_held(self) -> bool:
        try:
            with Directory.open(self.path) as root:
                return not root.lock(shared=True)
        except OSError:
            return False

    def write_meta(self, meta: Mapping[str, Any]) -> None:
        """Replace run.json. Raises OSError."""
        with Directory.open(self.path) as root:
            named = {"schema": layout.RUN_SCHEMA, "run": self.name, **meta}
            _write_json(root, layout.RUN, named)

    def cell_names(self) -> list[str]:
        """Names of the cells that have a cell.json, readable or not. Raises UsageError."""
        try:
            with Directory.open(self.path) as root:
                if not root.exists(layout.CELLS):
                    return []
                with root.folder(layout.CELLS) as cells:
                    names = cells.names()
                    _check_number(self.path, len(names))
                    return [name for name in names if _has_cell(cells, name)]
        except OSError as error:
            raise system_error(
                error,
                f"cannot read the cells of {self.path}",
                action="Copy the whole run folder again.",
            ) from error

    def cell(self, name: str) -> Path:
        """Where a finished cell lies, for messages."""
        return self.path / layout.CELLS / name

    def record(self, name: str) -> dict[str, Any] | None:
        """A finished cell's cell.json, or None when there is none of this version.

        Raises MissingError if this machine lacks what it takes to read it.
        """
        try:
            with self._cell(name) as cell:
                record = json_text.parse(cell.read(layout.CELL, limit=limits.MAX_JSON_BYTES))
        except (OSError, ValueError) as error:
            # a finished cell would be measured again
            if missing := lack(error, f"cannot read cell {name} of {self.path}"):
                raise missing from error
            return None
        return record if record.get("schema") == layout.CELL_SCHEMA else None

    @contextmanager
    def raw(self, cell: str) -> Iterator[Directory]:
        """A finished cell's folder. Raises OSError."""
        with self._cell(cell) as folder:
            yield folder

    @contextmanager
    def step(self, cell: str, size: int | None) -> Iterator[Directory]:
        """The raw output of a finished cell's step. Raises OSError."""
        with self._cell(cell) as folder, folder.folder(layout.step(size)) as step:
            yield step

    def begin(self, cell: Cell) -> Path:
        """Create an empty folder for a cell; nothing takes it for a cell yet. Raises OSError."""
        part = _part(cell)
        with self._cells() as cells:
            cells.remove(part)
            with cells.folder(part, make=True):
                return self.cell(part)

    def commit(self, cell: Cell, record: Mapping[str, Any]) -> None:
        """Make a measured cell appear, whole, in place of an earlier attempt. Raises OSError."""
        part, old = _part(cell), f".{cell.name}.old"
        with self._cells() as cells:
            with cells.folder(part) as measured:
                _write_json(measured, layout.CELL, {"schema": layout.CELL_SCHEMA, **record})
            cells.remove(old)
            if cells.exists(cell.name):
                cells.rename(cell.name, old)
            cells.rename(part, cell.name)
            cells.remove(old)

    def sweep(self) -> None:
        """Remove unfinished cells. Raises OSError."""
        with self._cells() as cells:
            for name in cells.names():
                if name.startswith("."):
                    cells.remove(name)

    def write_report(self, page: str, figures: Mapping[str, str]) -> Path:
        """Write report.html and figures/<name>.svg; return the path of the page.

        Figures of an earlier report that are not among these are removed. Raises UsageError.
        """
        try:
            with (
                Directory.open(self.path) as root,
                root.folder(layout.FIGURES, make=True) as drawings,
            ):
                for name, drawing in figures.items():
                    drawings.write(f"{name}.svg", drawing.encode())
                for name in drawings.names():
                    stale = name.endswith(".svg") and name.removesuffix(".svg") not in figures
                    if stale and not drawings.is_folder(name):
                        drawings.remove(name)
                root.write(layout.REPORT, page.encode())
        except OSError as error:
            raise system_error(
                error,
                f"cannot write the report into {self.path}",
                action=report_again(self.path),
            ) from error
        return self.report

    @property
    def report(self) -> Path:
        """Where the page of the report lies."""
        return self.path / layout.REPORT

    @contextmanager
    def _cells(self) -> Iterator[Directory]:
        with Directory.open(self.path) as root, root.folder(layout.CELLS) as cells:
            yield cells

    @contextmanager
    def _cell(self, name: str) -> Iterator[Directory]:
        with self._cells() as cells, cells.folder(name) as cell:
            yield cell


class _WorksError(Exception):
    """Undoes what was made to try it."""


def check_out_dir(out_dir: Path) -> None:
    """Raise an error unless run folders can be made in `out_dir`: before the work, not after it.

    Leaves nothing: the folder is made with the run's.
    """
    probe = f".rocelab-{secrets.token_hex(8)}"
    try:
        with suppress(_WorksError), Directory.making(out_dir) as folder:
            with folder.folder(probe, make=True):
                pass
            folder.remove(probe)
            raise _WorksError
    except OSError as error:
        raise _no_run_folder(out_dir, error) from error


def report_again(path: Path) -> str:
    """What to do when a run's results or report cannot be written."""
    return f"Fix that, then `rocelab report {path}`; or report on a copy in a place of your own."


def _check_number(path: Path, cells: int) -> None:
    if cells > limits.MAX_CELLS:
        raise UsageError(
            f"{path} has {cells} cells",
            cause=f"no run has more than {limits.MAX_CELLS}; it was changed by hand",
            action="Copy the whole run folder again.",
        )


def _run_in_progress(path: Path) -> UsageError:
    return UsageError(
        f"another process carries out the run in {path}",
        cause="it was started or resumed twice",
        action="Wait until that one has ended.",
    )


def _no_run_folder(out_dir: Path, error: OSError) -> RocelabError:
    return system_error(
        error,
        f"cannot make a run folder in {out_dir}",
        action="Choose another folder with --out.",
    )


def new_folder(out_dir: Path, name: str) -> Path:
    """Make a folder in `out_dir` whose name begins with the time. Raises UsageError."""
    try:
        with Directory.open(out_dir, make=True):
            return _create_folder(out_dir, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}")
    except OSError as error:
        raise _no_run_folder(out_dir, error) from error


def plan_of(run_dir: Path) -> Plan:
    """The plan of an earlier run, for `--resume`. Raises UsageError."""
    return RunFolder(run_dir).plan()


def now() -> str:
    """The time as run folders write it: UTC, ISO 8601, whole seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _part(cell: Cell) -> str:
    return f".{cell.name}.part"


def _has_cell(cells: Directory, name: str) -> bool:
    if name.startswith(".") or not cells.is_folder(name):
        return False
    with cells.folder(name) as cell:
        return cell.exists(layout.CELL)


def _write_json(folder: Directory, name: str, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=1, allow_nan=False)
    folder.write(name, f"{text}\n".encode(), durable=True)


def _why(error: OSError | ValueError) -> str:
    return quote(error.strerror if isinstance(error, OSError) else str(error))[1:-1]


def _create_folder(out_dir: Path, name: str) -> Path:
    """Create the folder `name`, or `name-2`, … when another run of this second has taken it."""
    for number in range(1, 100):
        path = out_dir / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path.resolve()
    raise FileExistsError(17, "a hundred runs began in this second", name)
