# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands in a child process where memory is limited: libraries abort when they get none.

The child is the command; this process tells how it ended.
"""

from __future__ import annotations

import ctypes
import os
import signal

from rocelab.errors import MissingError
from rocelab.terminal import console

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LIBRARIES_END = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP)
"""By these, where memory is lacking."""
_SI_KERNEL = 0x80
_PR_SET_PDEATHSIG = 1


def fork() -> int | None:
    """Fork; return None in the child, and its exit code in this process when it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*_ENDING, signal.SIGCHLD))
    this = os.getpid()
    child = os.fork()
    if not child:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != this:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # polars waits without end for a thread that got no memory, and its allocator tries again
        # without end, with a line on stderr each time
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:false")
        return None
    status = _wait(child)
    if -status not in _LIBRARIES_END:
        if status < 0:
            _end_by(signal.Signals(-status))
        return status
    error = MissingError(
        "the limit of memory is too low for this",
        cause=f"a library got no memory, and ended this process by {signal.Signals(-status).name}",
        action="Raise it with `ulimit -v`, `-d` or `-s`; a cgroup limits what is really used.",
    )
    console.show_error(error)
    return error.exit_code


def _end_by(number: signal.Signals) -> None:
    """End this process, too, as who waits for it expects."""
    if number is not signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)


def _wait(child: int) -> int:
    """Pass signals on; return the child's exit code, or the signal that ended it, negative."""
    while True:
        came = signal.sigwaitinfo((*_ENDING, signal.SIGCHLD))
        if came.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        # a terminal sends Ctrl-C to both
        elif came.si_signo != signal.SIGINT or came.si_code != _SI_KERNEL:
            os.kill(child, came.si_signo)
