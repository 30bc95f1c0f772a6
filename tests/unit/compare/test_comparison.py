# SPDX-License-Identifier: GPL-2.0-or-later
"""`rocelab compare`: verdicts on injected differences, refusals, warnings and output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from command_line import in_process as rocelab
from rocelab.compare.comparison import Comparison, Verdict, compare
from rocelab.errors import UsageError
from study_results import Line, table, write_run

SIZES = (64, 4096)


def run(
    folder: Path,
    *,
    latency: float = 5000.0,
    bandwidth: float = 100e6,
    repetitions: int = 6,
    accelerator: str = "native",
    exact: bool = False,
) -> Path:
    lines = [
        Line("latency", "tcp", "latency.mean", dict.fromkeys(SIZES, latency), exact=exact),
        Line("bw", "rxe-v2", "bandwidth", {4096: bandwidth}, exact=exact),
        Line("bw", "rxe-v2", "wire.frames", {4096: 7.0}, kind="roce_v2", unit="1", exact=True),
    ]
    return write_run(folder, table(lines, repetitions=repetitions, accelerator=accelerator))


def pair(tmp_path: Path, first: Mapping[str, object], second: Mapping[str, object]) -> Comparison:
    a, b = run(tmp_path / "a", **first), run(tmp_path / "b", **second)  # type: ignore[arg-type]
    return compare(a, b)


def verdicts(of: Comparison) -> dict[tuple[str, int | None], Verdict]:
    return {(cell.test, cell.size): cell.verdict for cell in of.cells}


def with_costs(folder: Path, cost: float) -> Path:
    """A run whose two machines share the cost of a message."""
    lines = [
        Line("latency", "tcp", "cost.message", {64: value}, kind=kind, unit=unit, tool="pingpong")
        for kind, value, unit in (
            ("marginal", cost / 2, "instructions"),
            ("start", 7e6, "instructions"),
            ("residual", 0.01, "1"),
        )
    ]
    one = table(lines, accelerator="icount")
    return write_run(folder, pl.concat([one, one.with_columns(node=pl.lit("n2"))]))


def test_the_cost_of_a_message_is_that_of_all_machines(tmp_path: Path) -> None:
    comparison = compare(with_costs(tmp_path / "a", 50_000), with_costs(tmp_path / "b", 53_000))
    assert {(cell.kind, cell.node): cell.verdict for cell in comparison.cells} == {
        ("marginal", "n1+n2"): Verdict.WORSE,
        ("start", "n1+n2"): Verdict.NO_EVIDENCE,
    }
    assert max(comparison.cells[0].first) == pytest.approx(50_000, rel=0.003)


def test_a_injected_difference(tmp_path: Path) -> None:
    """5 % more latency is worse, 5 % more bandwidth is better; less is the opposite."""
    there = pair(tmp_path / "there", {}, {"latency": 5250.0, "bandwidth": 105e6})
    assert verdicts(there) == {
        ("bw", 4096): Verdict.BETTER,
        ("latency", 64): Verdict.WORSE,
        ("latency", 4096): Verdict.WORSE,
    }
    for cell in there.cells:
        assert cell.ratio is not None
        assert cell.ratio.estimate == pytest.approx(1.05, abs=0.003)
        assert cell.ratio.interval is not None
        assert cell.ratio.interval.low <= 1.05 <= cell.ratio.interval.high
    back = pair(tmp_path / "back", {"latency": 5250.0, "bandwidth": 105e6}, {})
    assert verdicts(back)["bw", 4096] is Verdict.WORSE
    assert verdicts(back)["latency", 64] is Verdict.BETTER


def test_no_difference_is_no_evidence(tmp_path: Path) -> None:
    """A run compared with itself, and equal values, whose differences are all 0."""
    for number, exact in enumerate((False, True)):
        same = pair(tmp_path / str(number), {"exact": exact}, {"exact": exact})
        assert set(verdicts(same).values()) == {Verdict.NO_EVIDENCE}


def test_too_few_repetitions_are_no_evidence(tmp_path: Path) -> None:
    few = pair(tmp_path, {"repetitions": 3}, {"repetitions": 3, "latency": 9000.0})
    assert set(verdicts(few).values()) == {Verdict.NO_EVIDENCE}
    assert all(cell.difference.interval is None for cell in few.cells)


@pytest.mark.parametrize(
    ("first", "second"), [("tcg", "native"), ("kvm", "tcg"), ("icount", "tcg"), ("odd", "kvm")]
)
def test_emulated_and_real_runs_are_not_comparable(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(UsageError, match=f"{first}.*{second}") as caught:
        pair(tmp_path, {"accelerator": first}, {"accelerator": second})
    assert "no real time" in caught.value.cause


def test_two_real_accelerators_are_comparable_with_a_warning(tmp_path: Path) -> None:
    comparison = pair(tmp_path, {"accelerator": "kvm"}, {"accelerator": "native"})
    assert "accelerator: 'kvm' and 'native'" in comparison.warnings
    assert not comparison.is_emulated


def test_another_environment_gives_warnings(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a"), run(tmp_path / "b")
    meta = json.loads((b / "run.json").read_text())
    meta["nodes"]["n2"]["kernel"] = "7.1"
    meta["nodes"]["n1"]["nic"] |= {"mtu": 1500, "ipv4": "10.0.0.9"}
    meta["plan"]["benchmark"][0]["iterations"] = 5
    (b / "run.json").write_text(json.dumps(meta))
    assert compare(a, b).warnings == (
        "n1 nic mtu: 4200 and 1500",
        "n2 kernel: '6.12.117-amd64 #1 SMP SYNTHETIC' and '7.1'",
        "perftest write_lat iterations: 1000 and 5",
    )
    assert compare(a, a).warnings == ()


def test_other_metrics(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a"), run(tmp_path / "b")
    [frames] = compare(a, b, ["wire.*"]).cells
    assert frames.medians == (7, 7)
    assert frames.verdict is Verdict.NO_EVIDENCE
    with pytest.raises(UsageError, match="no cell in common"):
        compare(a, b, ["stage.*"])


def test_exit_codes(tmp_path: Path) -> None:
    """0: no cell is worse; 1: a cell is worse; 2: the runs are not comparable."""
    a, b = str(run(tmp_path / "a")), str(run(tmp_path / "b", latency=6000.0))
    assert rocelab("compare", b, a).returncode == 0
    worse = rocelab("compare", a, b)
    assert worse.returncode == 1, worse.stderr
    lines = worse.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "B against A: 0 better, 2 worse, 1 no evidence" in lines
    assert any(
        line.split()[:3] == ["64", "5.00", "6.00"] and line.endswith("worse") for line in lines
    )
    emulated = str(run(tmp_path / "c", accelerator="tcg"))
    refused = rocelab("compare", a, emulated)
    assert refused.returncode == 2
    assert "no real time" in refused.stderr
    missing = rocelab("compare", a, str(tmp_path / "nowhere"))
    assert missing.returncode == 2
    assert "Traceback" not in refused.stderr + missing.stderr


def test_json(tmp_path: Path) -> None:
    a, b = str(run(tmp_path / "a")), str(run(tmp_path / "b", latency=6000.0))
    document = json.loads(rocelab("compare", "--json", a, b).stdout)
    assert document["schema"] == "rocelab.compare/1"
    assert document["verdicts"] == {"better": 0, "worse": 2, "no evidence": 1}
    [cell] = [c for c in document["cells"] if c["size"] == 64]
    assert cell["a"]["repetitions"] == 6
    assert cell["ratio"]["low"] <= cell["ratio"]["estimate"] <= cell["ratio"]["high"]
    assert cell["ratio"]["estimate"] == pytest.approx(1.2, abs=0.01)
    assert cell["ratio"]["coverage"] >= 0.95


def test_a_hostile_run_cannot_control_the_terminal(tmp_path: Path) -> None:
    """Control characters in names and values are escaped."""
    a, b = run(tmp_path / "a"), run(tmp_path / "b")
    meta = json.loads((b / "run.json").read_text())
    meta["nodes"]["n1"]["\x1b[2Jkey"] = "\x1b[31m"
    (b / "run.json").write_text(json.dumps(meta))
    answer = rocelab("compare", str(a), str(b))
    assert answer.returncode == 0, answer.stderr
    assert "\x1b[2J" not in answer.stdout
    assert "\x1b[31m" not in answer.stdout
