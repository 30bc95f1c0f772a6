# SPDX-License-Identifier: GPL-2.0-or-later
"""Console output: results go to stdout, everything else to stderr."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rocelab.errors import RocelabError

if TYPE_CHECKING:
    from rich.console import Console

_MIN_WIDTH = 40
"""Columns that all output is made for, at least."""
_started = time.monotonic()


@cache
def out() -> Console:
    """The console on stdout, for results."""
    return _console(stderr=False)


@cache
def err() -> Console:
    """The console on stderr, for everything else."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # help and usage errors need no rich
    from rich.console import Console

    _forget_odd_sizes()
    # with NO_COLOR (no-color.org), rich itself leaves out colours only
    if is_plain():
        # rich takes a dumb terminal for 80 columns wide, unless it gets both width and height
        dumb = os.environ.get("TERM") == "dumb"
        width, height = shutil.get_terminal_size() if dumb else (None, None)
        made = Console(
            stderr=stderr,
            highlight=False,
            soft_wrap=True,
            color_system=None,
            width=width,
            height=height,
        )
    else:
        made = Console(stderr=stderr, highlight=False, soft_wrap=True)
    made.width = max(made.width, _MIN_WIDTH)
    return made


def _forget_odd_sizes() -> None:
    """Forget a terminal's size in the environment that cannot be one: rich believes COLUMNS=0."""
    for name in ("COLUMNS", "LINES"):
        size = os.environ.get(name, "")
        if not re.fullmatch("[1-9][0-9]{0,3}", size):
            os.environ.pop(name, None)


def is_plain() -> bool:
    """Whether the user wants nothing but text: NO_COLOR is set, or the terminal is dumb."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def redraws() -> bool:
    """Whether a line on stderr may overwrite itself; in a log that would be noise."""
    return sys.stderr.isatty() and not is_plain()


def print_json(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a document on stdout, one for the whole command."""
    # help needs no JSON
    import json

    out().print(json.dumps(document, indent=2, allow_nan=False), markup=False)


def clean(text: str) -> str:
    """Untrusted text with every control character made visible."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char)[0] != "C" else f"\\x{ord(char):02x}"
        for char in text
    )


def block(text: str, indent: str) -> str:
    """Untrusted text of which all lines but the first are indented."""
    return clean(text).replace("\n", f"\n{indent}")


_quiet: list[bool] = []


def be_quiet() -> None:
    """Leave out progress from now on; errors and results are still printed."""
    _quiet.append(True)


def say(text: str) -> None:
    """Print a line of progress."""
    if _quiet:
        return
    err().print(f"[{time.monotonic() - _started:6.1f} s] {clean(text)}", markup=False)


def show_error(error: RocelabError) -> None:
    """Print what failed, the likely cause, and what to do."""
    err().print(f"rocelab: {clean(error.what)}", markup=False, style="bold red")
    for label, text in (("likely cause", error.cause), ("what to do", error.action)):
        if text:
            lines = clean(text).splitlines()
            err().print(f"  {label}: {lines[0]}", markup=False)
            for line in lines[1:]:
                err().print(f"    {line}", markup=False)


_interruptions: list[str] = []


def show_interruption(
    by: str,
    results: str = "files that were finished; of a run, every finished cell",
    advice: str = "give the command again; continue a run with `rocelab run --resume RUN`",
) -> None:
    """Print what an interruption leaves, and how to continue; the first caller knows most."""
    if _interruptions:
        return
    _interruptions.append(by)
    # a print that was interrupted may have left them so that they hold back all others
    for console in (out, err):
        console.cache_clear()
    err().print(
        f"rocelab: interrupted by {clean(by)}\n"
        f"  what is kept: {clean(results)}\n"
        f"  what to do: {clean(advice)}",
        markup=False,
    )


def show_bug(error: BaseException) -> None:
    """Print one line about a bug in rocelab; ROCELAB_DEBUG gives the traceback."""
    err().print(
        f"rocelab: internal error: {clean(repr(error))}\n"
        "  what to do: run it again with ROCELAB_DEBUG=1 and report the output",
        markup=False,
        style="bold red",
    )


def leave(code: int) -> None:
    """Exit with a documented code."""
    sys.exit(int(code))
