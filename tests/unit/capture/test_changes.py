# SPDX-License-Identifier: GPL-2.0-or-later
"""What changed between two captures: causes, their cost, and the exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from corpus import CAPTURES, SAMPLES
from injected_causes import simulate
from rocelab import capture
from rocelab.capture import changes
from rocelab.capture.verdict import causes
from rocelab.cli.analyze import analyze
from rocelab.errors import ExitCode, UsageError


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(analyze, [str(word) for word in words])


def result_of(name: str) -> dict[str, Any]:
    return capture.analyze([str(CAPTURES / name)]).result


def rows(before: str, after: str) -> dict[tuple[str, str | None], str]:
    comparison = changes.compare(result_of(before), result_of(after))
    return {(row.cause, row.where): str(row.change) for row in comparison.rows}


def test_a_cause_is_new_or_gone() -> None:
    clean, lossy = "testbed-write-lat-64.pcap", "fault-drop-behind.pcap"
    assert rows(clean, lossy) == {("loss", "10.0.0.2"): "new"}
    assert rows(lossy, clean) == {("loss", "10.0.0.2"): "gone"}
    assert rows(lossy, lossy) == {("loss", "10.0.0.2"): "same"}
    assert rows(clean, clean) == {}


def test_the_same_loss_by_timeout_costs_more() -> None:
    assert rows("fault-drop-behind.pcap", "timeout.pcap") == {
        ("loss", "10.0.0.2"): "more",
        ("timeout", None): "new",
    }
    assert rows("timeout.pcap", "fault-drop-behind.pcap")["loss", "10.0.0.2"] == "less"


def test_a_loss_on_the_other_side_is_as_bad() -> None:
    """As two taps see a loss between them: another place, and about the same cost."""
    before, after = "fault-drop-behind.pcap", "fault-drop-before.pcap"
    assert set(rows(before, after).values()) == {"new", "gone"}
    assert changes.compare(result_of(before), result_of(after)).worse == []


@pytest.mark.parametrize("name", SAMPLES)
def test_every_cause_has_a_name_that_can_be_chosen(name: str) -> None:
    causes_of_it = causes.of(result_of(name))
    assert {one.name for one in causes_of_it} <= set(causes.NAMES)
    assert len({(one.name, one.where) for one in causes_of_it}) == len(causes_of_it)


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [
        ("loss", ExitCode.FINDINGS),
        ("corruption, loss", ExitCode.FINDINGS),
        ("any", ExitCode.FINDINGS),
        ("timeout", ExitCode.OK),
        ("receiver-not-ready", ExitCode.OK),
    ],
)
def test_the_exit_code_of_one_capture(fail_on: str, code: ExitCode) -> None:
    assert run(CAPTURES / "fault-drop-behind.pcap", "--fail-on", fail_on).exit_code == code


def test_the_exit_code_of_two_captures() -> None:
    better, worse = CAPTURES / "fault-drop-behind.pcap", CAPTURES / "timeout.pcap"
    assert run(worse, "--against", better).exit_code == ExitCode.FINDINGS
    assert run(worse, "--against", better, "--fail-on", "timeout").exit_code == ExitCode.FINDINGS
    assert run(worse, "--against", better, "--fail-on", "corruption").exit_code == ExitCode.OK
    assert run(better, "--against", worse).exit_code == ExitCode.OK
    assert run(worse, "--against", worse, "--fail-on", "any").exit_code == ExitCode.OK


def test_json() -> None:
    before, after = CAPTURES / "fault-drop-behind.pcap", CAPTURES / "timeout.pcap"
    document = json.loads(run(after, "--against", before, "--json", "--fail-on", "loss").stdout)
    assert document["schema"] == changes.SCHEMA
    assert document["before"]["files"] == [str(before)]
    assert document["after"]["verdict"][0]["cause"] == "loss"
    assert document["worse"] == ["loss", "timeout"]
    assert document["failed"] == ["loss"]
    loss = document["causes"][0]
    assert (loss["cause"], loss["where"], loss["change"]) == ("loss", "10.0.0.2", "more")
    assert loss["before"]["lost_ns"] == 9000
    assert loss["before"]["share"] == pytest.approx(9000 / 25_600)


def test_the_table_is_for_people(tmp_path: Path) -> None:
    odd = tmp_path / "a\x1b[2Jb.pcap"
    shutil.copy(CAPTURES / "timeout.pcap", odd)
    text = run(odd, "--against", CAPTURES / "fault-drop-behind.pcap").stdout
    assert "\x1b" not in text
    assert "Costs more in B: loss, timeout." in text
    assert all(len(line) <= 80 for line in text.splitlines() if "pcap" not in line)


@pytest.mark.parametrize(
    "words", [["--csv"], ["--html", "x.html"], ["--parquet", "x"], ["--live", "lo"]]
)
def test_what_a_comparison_has_no_place_for_is_refused(words: list[str]) -> None:
    one = CAPTURES / "timeout.pcap"
    result = run(one, "--against", one, *words)
    assert isinstance(result.exception, UsageError)


@pytest.mark.parametrize("fail_on", ["nothing", ",", "loss,\x1b"])
def test_an_unknown_cause_is_refused(fail_on: str) -> None:
    result = run(CAPTURES / "timeout.pcap", "--fail-on", fail_on)
    assert isinstance(result.exception, UsageError)


@pytest.mark.slow
def test_what_the_simulator_injects_is_new() -> None:
    clean: dict[str, Any] | None = None
    seen = right = 0
    for one in simulate(300):
        result = capture.analyze([str(one.path)], capture.Options(threads=1)).result
        if not one.costs:
            clean = clean or (result if one.seed % 3 == 0 else None)
            continue
        assert clean is not None
        if len(one.costs) > 1 or max(one.costs.values()) < 20_000:
            continue
        (cause,) = one.costs
        name = "loss" if cause.startswith("loss") else cause
        seen += 1
        right += name in changes.compare(clean, result).worse
        assert changes.compare(result, clean).worse == []
    assert seen > 20
    assert right >= 0.95 * seen
