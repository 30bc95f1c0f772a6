# SPDX-License-Identifier: GPL-2.0-or-later
"""Analyse a ring of capture files as one capture, each file when it is complete."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rocelab._core import Analysis as CoreAnalysis
from rocelab.capture import analysis, interruptible
from rocelab.capture.analysis import Analysis, Options
from rocelab.capture.ring import Part, Ring
from rocelab.errors import UsageError

_POLL_S = 0.2
"""Between two looks at the directory."""
_MAX_FILES = (1 << 16) - 1
"""Packets name their file in 16 bits."""
_NAMED_FILES = 16
_NAMED_MISSES = 16

Show = Callable[[dict[str, Any], str], None]
"""Called with what `--json` would print if the capture ended now, and the name of the last file."""


@dataclass
class _Follower:
    ring: Ring
    options: Options
    tell: Callable[[str], None]
    plan: analysis.Plan | None = None
    core: CoreAnalysis | None = None
    names: list[str] = field(default_factory=list)
    missed: int = 0
    misses: list[str] = field(default_factory=list)
    interrupted: bool = False

    def read(self, part: Part, *, growing: bool = False) -> bool:
        """Analyse a file behind those before it; False if it was gone.

        A signal ends it early.
        """
        with self.ring.open_part(part) as path:
            self.note()
            if path is None:
                return False
            core = self._core(path)
            try:
                core.append(path, head=part.head, growing=growing)
            except OSError as error:
                part.is_taken = True
                self._miss(f"{part.name}: {error.strerror or error}")
                return False
            self.names.append(part.name)
            part.is_taken = True

            def stop() -> None:
                self.interrupted = True
                core.stop()

            interruptible.run_steps(core.step, stop)
            return True

    def _core(self, path: str) -> CoreAnalysis:
        """The analysis, which the first file tells how to read all."""
        if self.core is None:
            self.plan = replace(analysis.reading_of(path, self.options), offsets_ns=())
            self.core = analysis.open_core([], self.options, self.plan, rows=False)
        return self.core

    def note(self) -> None:
        """Tell what is wrong with the directory."""
        for text in self.ring.missed:
            self._miss(text)
        for text in self.ring.others:
            self.tell(f"{text}: not followed")
        self.ring.missed.clear()
        self.ring.others.clear()

    def _miss(self, text: str) -> None:
        self.missed += 1
        if len(self.misses) < _NAMED_MISSES:
            self.misses.append(text)
        self.tell(f"{text}: its packets are missing")

    def result(self, raw: dict[str, Any]) -> dict[str, Any]:
        assert self.plan is not None
        plan = replace(self.plan, offsets_ns=(0,) * len(self.names))
        # files one after the other are what a ring has
        raw["evidence"]["spans_ns"] = [None] * len(self.names)
        result = analysis.finish_result(raw, self.names, self.options, plan)
        read = result["input"]
        read["files"] = self.names[-_NAMED_FILES:]
        read["files_before"] = len(self.names) - len(read["files"])
        del result["clock_offsets_ns"][: read["files_before"]]
        if self.missed:
            result["conditions"].insert(0, {"kind": "files_missed", "detail": self._missed_text()})
        return result

    def _missed_text(self) -> str:
        more = f", and {self.missed - len(self.misses)} more" * (self.missed > len(self.misses))
        return (
            f"{', '.join(self.misses)}{more}: their packets are missing; raise the number of files "
            "in the ring"
        )


def follow(where: str, options: Options, show: Show, tell: Callable[[str], None]) -> Analysis:
    """Analyse the files of a long capture until Ctrl-C, in constant memory.

    `where` is a directory, or a pattern of names in one. `show` is called after each file, `tell`
    with what is skipped. Ctrl-C analyses what there is of the last file, and ends.
    Raises UsageError if `where` is no directory, has files of several captures, or gets none.
    """
    with Ring(where) as ring:
        follower = _Follower(ring, options, tell)
        try:
            _follow(follower, show)
            parts = []
        except KeyboardInterrupt:
            parts = ring.rest()
        for part in parts:
            if len(follower.names) < _MAX_FILES and not follower.interrupted:
                follower.read(part, growing=part is parts[-1])
        follower.note()
    core = follower.core
    if core is None:
        raise UsageError(
            f"there is no capture in {where}",
            cause="nobody wrote one until the end",
            action="Start `dumpcap -b filesize:100000 -b files:10 -w DIR/ring.pcapng` first.",
        )
    core.finish()
    result = follower.result(core.result())
    if follower.interrupted:
        detail = f"interrupted: only a part of {follower.names[-1]} was read"
        result["conditions"].insert(0, {"kind": "interrupted", "detail": detail})
    assert follower.plan is not None
    return analysis.with_tables(core, result, follower.plan, interrupted=follower.interrupted)


def _follow(follower: _Follower, show: Show) -> None:
    """Analyse each file when it is complete; returns when one was read in part."""
    while True:
        for part in follower.ring.new_parts():
            if len(follower.names) == _MAX_FILES:
                follower.tell(f"{_MAX_FILES} files are analyzed, and no more can be")
                return
            if follower.read(part):
                if follower.interrupted:
                    return
                assert follower.core is not None
                show(follower.result(follower.core.snapshot()), part.name)
        follower.note()
        time.sleep(_POLL_S)
