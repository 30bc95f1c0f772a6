# SPDX-License-Identifier: GPL-2.0-or-later
"""What of run.json and of a cell.json a shared report may know: fields, and shapes of their values.

What is not in these tables is left out, so a new field is private until somebody adds it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any


class Shape(Enum):
    """What a value may be; numbers and truth values pass everywhere."""

    NUMBER = auto()
    """Nothing else."""
    WORDS = auto()
    """Text of known words (`rocelab.record.share_words`), versions and numbers."""
    NAME = auto()
    """The same, but each part of a name for itself: what people call a plan stays private."""
    KERNEL = auto()
    """Words; of a release with unknown words, its number."""
    SOURCE_HASH = auto()
    """What modinfo(8) calls srcversion."""
    MOMENT = auto()
    """A time of day in UTC."""
    NODE = auto()
    """The name of a node."""
    PROSE = auto()
    """What programs and people wrote: only its length passes."""


Fields = Shape | list[Any] | Mapping[str, Any]
"""A shape; a list of one, for each of its items; or fields by name: `*` is any other name, whose
words must be known, and `@` any node's."""

_NUMBERS = {"*": Shape.NUMBER}
_WORDS = {"*": Shape.WORDS}
_PLAN = {
    "plan": {
        "name": Shape.NAME,
        "study": Shape.NAME,
        "transports": [Shape.NAME],
        "probes": [Shape.WORDS],
        **_NUMBERS,
    },
    "testbed": {"provider": Shape.WORDS, "line": Shape.WORDS, "link": _NUMBERS, **_NUMBERS},
    "benchmark": [
        {
            "tool": Shape.NAME,
            "test": Shape.NAME,
            "label": Shape.NAME,
            "transports": [Shape.NAME],
            "sizes": [Shape.NUMBER],
            "mpi": {"method": Shape.WORDS, **_NUMBERS},
            **_NUMBERS,
        }
    ],
}
_PORT = {"device": Shape.WORDS, "port": Shape.NUMBER, "driver": Shape.WORDS, **_NUMBERS}
_NODE = {
    "kernel": Shape.KERNEL,
    "cpu": {"model": Shape.WORDS, "count": Shape.NUMBER},
    "driver": {"version": Shape.WORDS, "srcversion": Shape.SOURCE_HASH, "path": Shape.WORDS},
    "verbs": _PORT,
    "adapter": _PORT,
    "nic": {"driver": Shape.WORDS, "mtu": Shape.NUMBER, "offloads": _NUMBERS},
    "settings": _WORDS,
    "interrupts": _WORDS,
    "sysctls": _WORDS,
    "packages": _WORDS,
    "crc32_drivers": [Shape.WORDS],
}
RUN: Fields = {
    "schema": Shape.WORDS,
    "run": Shape.NAME,
    "rocelab": Shape.WORDS,
    "status": Shape.WORDS,
    "reason": Shape.PROSE,
    "accelerator": Shape.WORDS,
    "started": Shape.MOMENT,
    "ended": Shape.MOMENT,
    "cells": [Shape.NAME],
    "plan": _PLAN,
    "testbed": {
        **dict.fromkeys(
            ("provider", "qemu", "accelerator", "host_cpu", "data_link", "witness"), Shape.WORDS
        ),
        **_NUMBERS,
    },
    "nodes": {"@": _NODE},
}
_CHECK = {"check": Shape.WORDS, "expected": Shape.WORDS, "found": Shape.NUMBER, "ok": Shape.NUMBER}
_FAULTS = {
    "mended": [
        {
            "fault": Shape.NAME,
            "done": Shape.WORDS,
            "direction": Shape.WORDS,
            "found": Shape.WORDS,
            **_NUMBERS,
        }
    ],
    **dict.fromkeys(("causes", "naks", "sent_again", "unanswered", "ended"), _NUMBERS),
    "driver": {"@": _NUMBERS},
    **_NUMBERS,
}
CELL: Fields = {
    "schema": Shape.WORDS,
    "cell": Shape.NAME,
    "tool": Shape.NAME,
    "test": Shape.NAME,
    "transport": Shape.NAME,
    "repetition": Shape.NUMBER,
    "program": Shape.WORDS,
    "status": Shape.WORDS,
    "started": Shape.MOMENT,
    "ended": Shape.MOMENT,
    "client": Shape.NODE,
    "server": Shape.NODE,
    "error": {
        "kind": Shape.WORDS,
        "size": Shape.NUMBER,
        **dict.fromkeys(("what", "cause", "action"), Shape.PROSE),
    },
    "steps": [
        {
            "size": Shape.NUMBER,
            "counters": {"@": {"rxe": _NUMBERS}},
            "capture": {"missing": Shape.PROSE, **_NUMBERS},
            "frames": _NUMBERS,
            "proof": {"transport": Shape.NAME, "ok": Shape.NUMBER, "checks": [_CHECK]},
            "mpi": {"version": Shape.WORDS, "note": Shape.PROSE, **_NUMBERS},
            "faults": _FAULTS,
        }
    ],
}
COLUMNS = {
    **dict.fromkeys(("run", "tool", "test", "transport", "metric"), Shape.NAME),
    **dict.fromkeys(("kind", "unit", "accelerator", "driver", "program"), Shape.WORDS),
    "node": Shape.NODE,
}
"""Of results.parquet; the others are numbers."""
