# SPDX-License-Identifier: GPL-2.0-or-later
"""The bpftrace scripts name the events' numbers as the driver does, and have a usage text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = sorted((ROOT / "ebpf/scripts").glob("*.bt"))
HEADERS = "".join(
    (ROOT / f"kernel/src/{name}.h").read_text()
    for name in ("rxe_record", "rxe_names", "rxe_values")
)


def driver_list(name: str) -> list[str]:
    """Return the names of one of the driver's lists, in the order of their numbers."""
    text = HEADERS.split(f"#define {name}(EM, EML)")[1].split("\n\n")[0]
    return re.findall(r'"(\w+)"', text)


def script_list(script: str, variable: str) -> dict[int, str]:
    """Return a script's names by number."""
    text = (ROOT / "ebpf/scripts" / script).read_text()
    entries = re.findall(rf'@{variable}\[(\w+)\] = "(\w+)"', text)
    return {int(number, 0): name for number, name in entries}


@pytest.mark.parametrize(
    ("script", "variable", "name", "first"),
    [
        ("rxedrops.bt", "reason", "RXE_DROP_REASONS", 1),
        ("rxeretrans.bt", "retry_reason", "RXE_RETRY_REASONS", 0),
        ("rxeretrans.bt", "nak_dir", "RXE_NAK_DIRS", 0),
        ("rxeretrans.bt", "rnr_step", "RXE_RNR_STEPS", 0),
        ("rxeretrans.bt", "syndrome", "RXE_NAK_CODES", 0x60),
        ("rxeqp.bt", "state", "RXE_QP_STATES", 0),
        ("rxeqp.bt", "cause", "RXE_QP_CAUSES", 0),
    ],
)
def test_names_are_the_drivers(script: str, variable: str, name: str, first: int) -> None:
    """Every number that an event can have is named as the driver names it."""
    expected = dict(enumerate(driver_list(name)))
    if first == 1:
        assert expected.pop(0) == "none"
    elif first:
        expected = {first + number: word for number, word in expected.items()}
    assert script_list(script, variable) == expected


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_says_what_it_is(path: Path) -> None:
    """Each script is executable and starts with its purpose and usage."""
    text = path.read_text()
    assert path.stat().st_mode & 0o111
    assert text.startswith("#!/usr/bin/env bpftrace\n")
    assert f" * {path.name} - " in text
    assert f" * USAGE: {path.name}" in text
    assert max(len(line) for line in text.expandtabs(8).splitlines()) <= 100


def test_they_are_documented() -> None:
    """The how-to mentions each script."""
    howto = (ROOT / "docs/howto/events.md").read_text()
    assert len(SCRIPTS) == 4
    for path in SCRIPTS:
        assert f"ebpf/scripts/{path.name}" in howto
