# SPDX-License-Identifier: GPL-2.0-or-later
"""How rocelab talks to a person: results on stdout, everything else on stderr."""

from __future__ import annotations

import sys
import time
import unicodedata

from rich.console import Console

from rocelab.errors import ExitCode, RocelabError

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

_started = time.monotonic()


def clean(text: str) -> str:
    """Text from elsewhere, with every control character made visible: it may be hostile."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char)[0] != "C" else f"\\x{ord(char):02x}"
        for char in text
    )


def say(text: str) -> None:
    """A line of progress."""
    err.print(f"[{time.monotonic() - _started:6.1f} s] {clean(text)}", markup=False)


def show_error(error: RocelabError) -> None:
    """What failed, why probably, what to do."""
    err.print(f"rocelab: {clean(error.what)}", markup=False, style="bold red")
    for label, text in (("likely cause", error.cause), ("what to do", error.action)):
        if text:
            lines = clean(text).splitlines()
            err.print(f"  {label}: {lines[0]}", markup=False)
            for line in lines[1:]:
                err.print(f"    {line}", markup=False)


def show_bug(error: BaseException) -> None:
    """A bug in rocelab: one line for the person, the traceback only when asked for."""
    err.print(
        f"rocelab: internal error: {clean(repr(error))}\n"
        "  what to do: run it again with ROCELAB_DEBUG=1 and report what it prints",
        markup=False,
        style="bold red",
    )


def leave(code: ExitCode) -> None:
    """End with a documented exit code."""
    sys.exit(int(code))
