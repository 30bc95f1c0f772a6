# SPDX-License-Identifier: GPL-2.0-or-later
"""The `rocelab` command."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from unittest import mock


def rocelab(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run it as a user does, in a process."""
    return subprocess.run(
        [sys.executable, "-m", "rocelab", *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def in_process(*words: str) -> subprocess.CompletedProcess[str]:
    """Call its main function, which saves the second that a new process takes."""
    from rocelab.cli import main
    from rocelab.terminal import console

    out, err = io.StringIO(), io.StringIO()
    status: object = None
    with (
        signals_kept(),
        mock.patch.object(sys, "argv", ["rocelab", *words]),
        # quiet lasts for a process, and tests share one
        mock.patch.object(console, "_quiet", []),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    assert isinstance(status, int), f"main() left with {status!r}"
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


@contextmanager
def signals_kept() -> Iterator[None]:
    """Undo what main() does to signals: it handles them, and ignores them when it has ended."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {n: signal.getsignal(n) for n in handled}
    hook = sys.unraisablehook
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
