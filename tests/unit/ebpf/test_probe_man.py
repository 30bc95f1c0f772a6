# SPDX-License-Identifier: GPL-2.0-or-later
"""The probes' manual pages agree with their option tables (ebpf/*/*_option_table.h)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from rocelab.plans.catalog import PROBE_PROGRAMS

ROOT = Path(__file__).resolve().parents[3]

each_probe = pytest.mark.parametrize("probe", PROBE_PROGRAMS)


def page(probe: str) -> str:
    """The manual page."""
    return (ROOT / f"docs/man/{probe}.8.md").read_text()


def source(probe: str) -> str:
    """The option table, with the shared rows that it includes."""

    def with_shared(table: Path) -> str:
        def included(line: re.Match[str]) -> str:
            return with_shared(ROOT / "ebpf/lib" / line[1])

        return re.sub(r'^#include "(\w+\.h)"$', included, table.read_text(), flags=re.MULTILINE)

    return with_shared(next((ROOT / f"ebpf/{probe}").glob("*_option_table.h")))


class Option(NamedTuple):
    """One option: `-d`, or nothing; `--device`; `NAME`, or nothing."""

    letter: str
    name: str
    argument: str


def table(probe: str) -> list[Option]:
    """Return the program's options."""
    text = re.sub(r"/\*.*?\*/", "", source(probe), flags=re.DOTALL)
    pattern = r"OPTION\(\s*('.'|\w+),\s*\"([\w-]+)\",\s*(NULL|\"[^\"]*\"),"
    entries = re.findall(pattern, text)
    assert len(entries) == text.count("OPTION("), "an entry of the table was not understood"
    return [
        Option(
            f"-{letter[1]}" if letter.startswith("'") else "",
            f"--{name}",
            "" if argument == "NULL" else argument.strip('"'),
        )
        for letter, name, argument in entries
    ]


def manual(probe: str) -> list[Option]:
    """Return the options in the manual page's section OPTIONS."""
    section = page(probe).split("## OPTIONS")[1].split("\n## ")[0]
    heads = re.findall(
        r"^(?:\*\*(-\w)\*\*, )?\*\*(--[\w-]+)\*\*(?: \*([^*]+)\*)?$", section, re.MULTILINE
    )
    assert len(heads) == section.count("\n: "), "an option of the page was not understood"
    return [Option(*head) for head in heads]


@each_probe
def test_same_options_in_the_same_order(probe: str) -> None:
    """Letters, names and arguments agree; one table serves getopt and --help."""
    assert len(table(probe)) >= 8  # those that all probes share
    assert manual(probe) == table(probe)


def test_a_name_has_one_letter_and_p_is_the_pid() -> None:
    """-p is a PID in every probe, as in bcc's tools."""
    letters: dict[str, set[str]] = {}
    for option in (option for probe in PROBE_PROGRAMS for option in table(probe)):
        letters.setdefault(option.name, set()).add(option.letter)
    assert {name for name, users in letters.items() if len(users) > 1} == set()
    assert {name for name, users in letters.items() if "-p" in users} == {"--pid"}


@each_probe
def test_help_fits_the_terminal(probe: str) -> None:
    """--help puts the help of an option into columns 26 to 80."""
    helps = re.findall(r'^OPTION\(.*?"([^"]*)"\)$', source(probe), re.DOTALL | re.MULTILINE)
    assert len(helps) == len(table(probe))
    assert max(map(len, helps)) <= 55


def test_exit_statuses() -> None:
    """The common page has the statuses that the programs' header defines."""
    header = (ROOT / "ebpf/lib/msg.h").read_text()
    defined = {int(value) for value in re.findall(r"EXIT_\w+ = (\d+),", header)}
    common = (ROOT / "docs/man/rxe-probes.7.md").read_text()
    section = common.split("## EXIT STATUS")[1].split("\n## ")[0]
    listed = {int(value) for value in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert listed | {126, 127} == defined | {0}
    assert "126" in section
    assert "127" in section


def test_contexts_owners_and_features_are_explained() -> None:
    """rxecpu's page has every name that can be in its output."""
    report = (ROOT / "ebpf/rxecpu/cpu_report.c").read_text()
    contexts = re.findall(r'"([\w.]+)"', report.split("context_names")[1].split(";")[0])
    assert len(contexts) == 16
    text = page("rxecpu")
    kinds = re.search(r"\| `softirq\.<kind>` \| `([\w ]+)`", text)
    assert kinds
    assert [f"softirq.{kind}" for kind in kinds[1].split()] == contexts[6:]
    features = (ROOT / "ebpf/rxecpu/kernel_features.c").read_text()
    absence = dict(re.findall(r'\[(FEATURE_\w+)\]\s*=\s*"([^"]+)"', features.split("absence")[1]))
    names = dict(re.findall(r'\[(FEATURE_\w+)\]\s*=\s*"([^"]+)"', features.split("absence")[0]))
    assert len(names) == len(absence) == 6
    missing = text.split("## WHAT CAN BE MISSING")[1].split("\n## ")[0]
    for feature, name in names.items():
        assert f"| `{name}` | {absence[feature]}" in missing
    owners = re.findall(r'"(\w+)"', report.split("owner_names[OWNERS]")[1].split(";")[0])
    for name in (*contexts[:6], *owners):
        assert f"| `{name}` |" in text
