# SPDX-License-Identifier: GPL-2.0-or-later
"""The life of a probe around one step: it attaches, the step runs, it writes what it saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rocelab.errors import CellError, TestbedError
from rocelab.node import Completed, Process
from rocelab.node.parallel import at_once

_ATTACHES_WITHIN = 120
_WRITES_WITHIN = 120


class ProbeError(CellError):
    """A probe gave nothing that may be used."""


@contextmanager
def attached(program: str, processes: Sequence[Process]) -> Iterator[list[Completed]]:
    """Let the context run when all `processes` of a probe are ready, then end them.

    The list is filled, in their order, when the context has ended well. Raises ProbeError when one
    does not attach, does not end, or fails.
    """
    results: list[Completed] = []
    try:
        at_once(lambda process: _wait_ready(program, process), processes)
        yield results
        at_once(lambda process: process.interrupt(), processes)
        results += at_once(lambda process: _wait_result(program, process), processes)
    finally:
        for process in processes:
            process.kill()


def _wait_ready(program: str, process: Process) -> None:
    try:
        process.wait_for_line(f"{program}: ready", timeout=_ATTACHES_WITHIN)
    except TestbedError as error:
        raise ProbeError(
            error.what, cause=error.cause, action=f"Try it by hand: `rocelab ssh n1 {program}`."
        ) from error


def _wait_result(program: str, process: Process) -> Completed:
    try:
        done = process.wait(timeout=_WRITES_WITHIN)
    except TestbedError as error:
        raise ProbeError(f"{program} did not write its result", cause=error.cause) from error
    if done.returncode:
        raise ProbeError(
            f"{program} exited with {done.returncode}", cause=done.stderr.strip()[-500:]
        )
    return done
