# SPDX-License-Identifier: GPL-2.0-or-later
"""How QEMU ended, for people."""

from __future__ import annotations

import signal


def exit_text(status: int) -> str:
    """Return a status as in subprocess.Popen.returncode for people: -11 is SIGSEGV."""
    try:
        return signal.Signals(-status).name if status < 0 else f"status {status}"
    except ValueError:
        return f"signal {-status}"
