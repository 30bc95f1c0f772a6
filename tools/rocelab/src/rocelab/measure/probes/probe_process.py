# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a probe around one step: it attaches, the step runs, it writes its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rocelab.errors import CellError, TestbedError
from rocelab.testbed.node import Completed, Process
from rocelab.testbed.node.parallel import at_once

_ATTACH_TIMEOUT = 120
_RESULT_TIMEOUT = 120


class ProbeError(CellError):
    """A probe failed or gave an unusable result."""


@contextmanager
def attached(program: str, processes: Sequence[Process]) -> Iterator[list[Completed]]:
    """Wait until all `processes` of a probe are ready, run the context, then stop them.

    Yields a list that has their results, in order, once the context has ended without an error.
    Raises ProbeError when one does not attach, does not end, or fails.
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
        process.wait_for_line(f"{program}: ready", timeout=_ATTACH_TIMEOUT)
    except TestbedError as error:
        raise ProbeError(
            error.what, cause=error.cause, action=f"Run it by hand: `rocelab ssh n1 {program}`."
        ) from error


def _wait_result(program: str, process: Process) -> Completed:
    try:
        done = process.wait(timeout=_RESULT_TIMEOUT)
    except TestbedError as error:
        raise ProbeError(
            f"{program} did not write its result",
            cause=error.cause,
            action=f"Run it by hand: `rocelab ssh n1 {program}`.",
        ) from error
    if done.returncode:
        raise ProbeError(
            f"{program} exited with {done.returncode}",
            cause=done.stderr.strip()[-500:],
            action=f"Run it by hand: `rocelab ssh n1 {program}`.",
        )
    return done
