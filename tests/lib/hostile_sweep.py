# SPDX-License-Identifier: GPL-2.0-or-later
"""Run every command against every hostile thing: `python hostile_sweep.py FILE`.

Runs in a world of its own (hostile_world.inside), all cases in one process. Reads the world from
FILE as JSON, and writes what each case did to standard output, a JSON object per line.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import io
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_line import signals_kept
from command_tree import Command, commands

_LONGEST = 100
"""Seconds after which a case hangs: far more than any takes on a busy machine."""

_FOR_NAMES = ("missing", "a folder", "a long name", "control characters")
"""What options get that take a name, not a path."""
_STREAMS = ("closed", "/dev/full", "a closed pipe")


@dataclass(frozen=True)
class World:
    """Where things are."""

    root: Path
    things: dict[str, str]
    good: dict[str, dict[str, list[str]]]
    """By command and parameter: words that work."""
    environments: dict[str, dict[str, str | None]]
    """None: the variable is not set."""
    only: list[str]
    """Commands to run; empty: all."""


@dataclass(frozen=True)
class Case:
    """One call of a command."""

    name: str
    words: list[str]
    environment: dict[str, str | None] = field(default_factory=dict)
    stdout: str = ""
    stderr: str = ""


def cases(world: World) -> Iterator[Case]:
    """Yield every parameter with every thing, then every environment, then every stream."""
    for command in commands():
        if world.only and command.name not in world.only:
            continue
        for parameter in command.parameters:
            if parameter.takes_text:
                few = parameter.option is not None and not parameter.takes_path
                for label, path in world.things.items():
                    if few and label not in _FOR_NAMES:
                        continue
                    words = _words(command, world, {parameter.name: [path]})
                    yield Case(f"{command.name}: {parameter.name} is {label}", words)
        words = _words(command, world, {})
        for label, variables in world.environments.items():
            yield Case(f"{command.name}: {label}", words, variables)
        for stream in _STREAMS:
            yield Case(f"{command.name}: stdout is {stream}", words, stdout=stream)
        yield Case(f"{command.name}: stderr is closed", words, stderr="closed")
        yield Case(f"{command.name}: stderr is /dev/full", words, stderr="/dev/full")


def _words(command: Command, world: World, given: dict[str, list[str]]) -> list[str]:
    values = world.good.get(command.name, {}) | given
    options: list[str] = []
    arguments: list[str] = []
    for parameter in command.parameters:
        if parameter.required and parameter.name not in values:
            raise LookupError(f"test_hostile_paths.py needs a good {command.name} {parameter}")
        for value in values.get(parameter.name, []):
            if parameter.option is None:
                arguments.append(value)
            else:
                options += [parameter.option, value] if value else [parameter.option]
    return [*command.words, *options, "--", *arguments]


def run(case: Case, world: World) -> dict[str, Any]:
    """Run a case in this process; return its exit code, its messages and what it left."""
    from rocelab.cli import app

    before = _snapshot(world.root)
    for name, value in case.environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    tempfile.tempdir = None
    os.chdir(world.root / "cwd")
    began = time.monotonic()
    with signals_kept(), _Streams(case, world.root) as streams:
        sys.argv = ["rocelab", *case.words]
        status: object = "returned"
        _feed(case, world)
        try:
            app.main()
        except SystemExit as end:
            status = end.code
        except BaseException as error:
            status = f"escaped: {error!r:.300}"
    after = _snapshot(world.root)
    return {
        "case": case.name,
        "words": case.words,
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "errors": streams.errors,
        "shows_errors": not case.stderr,
        "left": sorted(
            f"{name}: {before.get(name)} -> {after.get(name)}"
            for name in {*before, *after}
            if before.get(name) != after.get(name)
        ),
    }


def _feed(case: Case, world: World) -> None:
    """Open a FIFO's other end, and close it, for commands that may read streams."""
    if case.name.startswith("analyze"):
        fifo = world.things["a FIFO"]
        if fifo in case.words:
            # a process: the core keeps our other threads from running while it opens a file
            subprocess.Popen(["timeout", "60", "sh", "-c", ': > "$1"', "sh", fifo])


def _snapshot(root: Path) -> dict[str, str]:
    """Say what is below `root`, but for folders that programs keep for the user."""
    entries: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name not in ("streams", "home", "runtime")]
        for name in (*folders, *files):
            path = Path(folder) / name
            about = path.lstat()
            size = about.st_size if name in files else 0
            entries[str(path)] = f"{about.st_mode:o} {size}"
    return entries


class _Streams:
    """Standard output and error as the case has them, then as they were."""

    def __init__(self, case: Case, root: Path) -> None:
        self._case = case
        self._folder = root / "streams"
        self.errors = ""

    def __enter__(self) -> _Streams:
        self._kept = [os.dup(number) for number in (1, 2)]
        self._objects = (sys.stdout, sys.stderr)
        self._put(1, self._case.stdout or str(self._folder / "out"))
        self._put(2, self._case.stderr or str(self._folder / "err"))
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.flush()
        for descriptor, number in zip(self._kept, (1, 2), strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdout, sys.stderr = self._objects
        if not self._case.stderr:
            self.errors = (self._folder / "err").read_text(errors="replace")

    def _put(self, number: int, target: str) -> None:
        name = "stdout" if number == 1 else "stderr"
        if target == "closed":
            os.close(number)
            setattr(sys, name, None)
            return
        if target == "a closed pipe":
            reader, writer = os.pipe()
            os.close(reader)
        else:
            writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(writer, number)
        os.close(writer)
        file = io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding="utf-8")
        setattr(sys, name, file)


def _nobody(uid: int) -> pwd.struct_passwd:
    """Know no user, as in a container that runs as some number."""
    raise KeyError(uid)


def _alive(runtime: Path) -> object:
    """Hold the lock of a testbed whose files are hostile: it is taken for one that is up."""
    folder = runtime / "rocelab" / "default"
    lock = (folder / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def main() -> None:
    """Run all cases."""
    given = json.loads(Path(sys.argv[1]).read_text())
    world = World(
        Path(given["root"]), given["things"], given["good"], given["environments"], given["only"]
    )
    os.environ.update(given["environment"])
    pwd.getpwuid = _nobody
    lock = _alive(Path(given["runtime"]))
    answers = os.fdopen(os.dup(1), "w")
    for case in cases(world):
        os.environ.update(given["environment"])
        print(json.dumps({"begins": case.name}), file=answers, flush=True)
        faulthandler.dump_traceback_later(_LONGEST, exit=True, file=answers)
        print(json.dumps(run(case, world)), file=answers, flush=True)
        faulthandler.cancel_dump_traceback_later()
        for used in ("cwd", "missing", "full/folder/rocelab"):
            shutil.rmtree(world.root / used, ignore_errors=True)
        (world.root / "cwd").mkdir(exist_ok=True)
    del lock


if __name__ == "__main__":
    main()
