# SPDX-License-Identifier: GPL-2.0-or-later
"""The studies that rocelab ships, and their plans."""

from __future__ import annotations

import functools
from importlib import resources

from rocelab.errors import UsageError
from rocelab.plans import plan_file
from rocelab.plans.plan import Plan
from rocelab.strict import join_values, parse_toml, quote
from rocelab.studies import study_file
from rocelab.studies.claims import Study

NAMES = ("gaiser2010", "kaur2014", "zeng2021", "ismail2013", "subramoni2009")
"""The first is the one that measured four of our transports."""


@functools.cache
def study(name: str) -> Study:
    """A study. Raises UsageError if there is none of that name."""
    values = parse_toml(_text(name, "study.toml"), f"{name}/study.toml", kind="study")
    return study_file.read(name, values, _text(name, "published.csv"))


def plan(name: str, *, quick: bool) -> Plan:
    """A study's full plan, or the quick one, which two emulated nodes finish in minutes.

    Raises UsageError if there is no such study.
    """
    file = "quick.toml" if quick else "full.toml"
    return plan_file.from_toml(_text(name, file), f"{name}/{file} (built in)")


def _text(name: str, file: str) -> str:
    if name not in NAMES:
        raise UsageError(
            f"there is no study {quote(name)}",
            cause="rocelab has the studies that `rocelab study list` shows",
            action=f"Choose from {join_values(NAMES)}.",
        )
    folder = resources.files("rocelab.studies") / "data" / name
    return (folder / file).read_text("utf-8")
