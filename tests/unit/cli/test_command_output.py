# SPDX-License-Identifier: GPL-2.0-or-later
"""What commands print: a forecast instead of a run, JSON instead of text, progress or none."""

from __future__ import annotations

import errno
import json
import os
import tarfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process
from fake_testbed import FakeTestbed
from json_keys import keys
from rocelab.cli import run as run_command
from rocelab.directory import Directory
from rocelab.errors import ExitCode
from rocelab.measure import run_plan, runner
from rocelab.measure.progress import Progress
from rocelab.measure.runner import RunOutcome
from rocelab.plans import plan_file
from rocelab.plans.plan import Plan
from rocelab.record import layout
from rocelab.terminal import console
from rocelab.testbed.qemu import snapshot_cache

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "tests/unit/data/sample-run.tar.gz"
DESCRIBED = (ROOT / "docs/formats/json.md").read_text()
PLAN = """
[plan]
name = "fake"
repetitions = 1
transports = ["tcp"]
probes = []
[[benchmark]]
tool = "qperf"
test = "tcp_lat"
sizes = [64]
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with the sample run, a damaged run and other things."""
    folder = tmp_path / "runs" / "20261122T162446Z-demo"
    folder.mkdir(parents=True)
    with tarfile.open(SAMPLE) as tar:
        tar.extractall(folder, filter="data")
    (tmp_path / "runs" / "zz-no-run").mkdir()
    (tmp_path / "runs" / "zz-damaged").mkdir()
    (tmp_path / "runs" / "zz-damaged" / "run.json").write_text("{")
    (tmp_path / "runs" / "a file").write_text("")
    return tmp_path / "runs"


def took(runs: Path) -> float:
    """Seconds that the cells of the sample took together; all were emulated."""
    spent = 0.0
    for path in runs.glob("*/cells/*/cell.json"):
        cell = json.loads(path.read_text())
        began, ended = (datetime.fromisoformat(cell[key]) for key in ("started", "ended"))
        spent += (ended - began).total_seconds()
    return spent


def test_a_dry_run_boots_nothing_and_says_what_would_run(runs: Path, tmp_path: Path) -> None:
    before = sorted(runs.rglob("*"))
    done = in_process("run", "demo", "--dry-run", "--out", str(runs))
    assert done.returncode == 0, done.stderr
    assert "demo, emulated:\n  7 cells with 7 steps\n" in done.stdout
    assert f"time: about {round(took(runs) / 60)} min" in done.stdout
    assert "demo, with KVM:\n  14 cells with 14 steps\n" in done.stdout
    assert "time: unknown" in done.stdout
    assert done.stdout.count(".r02\n") == 7
    assert sorted(runs.rglob("*")) == before
    nowhere = in_process("run", "demo", "--dry-run", "--out", str(tmp_path / "none"))
    assert nowhere.stdout.count("time: unknown") == 2
    assert not (tmp_path / "none").exists()


def test_a_dry_run_as_json(runs: Path) -> None:
    done = in_process("run", "demo", "--dry-run", "--json", "--icount", "--out", str(runs))
    document = json.loads(done.stdout)
    [case] = document["cases"]
    assert document["schema"] == "rocelab.dry_run/1"
    assert case["cells"] == [cell.name for cell in plan_file.load("demo").where_counted().cells()]
    assert case["seconds"] == pytest.approx(took(runs), abs=1)
    assert not {key for key in keys(document) - {"schema"} if f"`{key}`" not in DESCRIBED}


def test_quiet_leaves_out_progress(runs: Path) -> None:
    loud = in_process("run", "demo", "--dry-run", "--out", str(runs))
    assert "reading the plan" in loud.stderr
    quiet = in_process("run", "demo", "--dry-run", "-q", "--out", str(runs))
    assert (quiet.stderr, quiet.stdout) == ("", loud.stdout)
    console._quiet.clear()
    assert in_process("run", "demo", "-q", "-v").returncode == 2
    bad = in_process("run", "no-such-plan", "-q")
    assert bad.returncode == 2
    assert "no-such-plan" in bad.stderr


def test_verbose_gives_each_size_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    cell = plan_file.load("demo").cells()[0]
    for each_step in (True, False):
        lines = run_command.Lines(each_step=each_step)
        lines.cell_started(cell, number=1)
        lines.step_started(cell, size=4096)
        said = capsys.readouterr().err
        assert (f"{cell.name}: 4096 bytes" in said) is each_step


def test_doctor_as_json() -> None:
    done = in_process("doctor", "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "rocelab.doctor/1"
    checks = {check["check"]: check for check in document["checks"]}
    assert {"qemu", "ssh", "accelerator"} <= checks.keys()
    assert done.returncode == (0 if all(check["ok"] for check in checks.values()) else 3)
    for check in checks.values():
        assert set(check) == (
            {"check", "ok", "found"} if check["ok"] else {"check", "ok", "what", "cause", "action"}
        )
    assert not {key for key in keys(document) - {"schema"} if f"`{key}`" not in DESCRIBED}


def test_status_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = in_process("status", "--json")
    assert json.loads(done.stdout) == {"schema": "rocelab.status/2", "nodes": [], "saved": []}


def test_saved_machines_are_seen_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    snapshot_cache.write("a" * 64, "n1, with a driver", lambda file: file.write(b"x" * 2_000_000))
    assert "1 saved machines (2.00 MB)" in in_process("status").stdout
    document = json.loads(in_process("status", "--json").stdout)
    assert [(each["what"], each["bytes"] > 2_000_000) for each in document["saved"]] == [
        ("n1, with a driver", True)
    ]
    assert "removed 1 saved machines (2.00 MB)" in in_process("clean").stdout
    assert snapshot_cache.entries() == []
    assert "saved" not in in_process("status").stdout


@pytest.mark.parametrize(
    ("file", "advice"),
    [(layout.RUN, "run --resume"), (layout.RESULTS, "report"), (layout.REPORT, "report")],
)
def test_a_run_whose_disk_is_full_at_its_end_says_only_that(
    file: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    write, written = Directory.write, set()

    def on_fake(
        plan: Plan, out: Path, progress: Progress, resume: Path | None, **_: object
    ) -> RunOutcome:
        return runner.run(plan, FakeTestbed(), out, resume=resume, progress=progress)

    def until_measured(folder: Directory, name: str, content: Any, **how: bool) -> None:
        if name == file and layout.CELL in written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, name, content, **how)
        written.add(name)

    monkeypatch.setattr(run_plan, "run_plan", on_fake)
    with monkeypatch.context() as filled:
        filled.setattr(Directory, "write", until_measured)
        done = in_process("run", str(plan), "--out", str(tmp_path / "runs"))
    (run,) = (tmp_path / "runs").iterdir()
    said = " ".join(done.stderr.split())
    assert done.returncode == ExitCode.MISSING
    assert "No space left on device" in said
    assert said.count("likely cause") == 1
    assert f"`rocelab {advice} {run}`" in said
    assert done.stdout == ""
    done = in_process(*advice.split(), str(run))
    assert (done.returncode, done.stdout.split()[-1]) == (0, str(run / "report.html")), done.stderr


def test_a_run_that_ended_as_json(runs: Path) -> None:
    outcome = RunOutcome(runs / "x", "complete", ok=7, failed=("a-cell",), missing=0)
    document = run_command._outcome_document(outcome)
    assert document["report"] == str(runs / "x" / "report.html")
    assert (document["ok"], document["failed"], document["exit_code"]) == (7, ["a-cell"], 5)
    assert not {key for key in keys(document) - {"schema"} if f"`{key}`" not in DESCRIBED}
