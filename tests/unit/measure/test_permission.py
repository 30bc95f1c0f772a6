# SPDX-License-Identifier: GPL-2.0-or-later
"""A stranger's plan: where its commands may run, and what they may take along."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import in_process
from rocelab.errors import CellError, UsageError
from rocelab.measure.command import permission
from rocelab.plans import plan_file
from rocelab.plans.plan import Plan

PLAN = """
[plan]
name = "theirs"
transports = ["rxe-v2"]
[testbed]
{testbed}
[[benchmark]]
tool = "{tool}"
"""
COMMAND = """
test = "time"
[benchmark.command]
client = ["sh", "-c", "id"]
"""
PERFTEST = """
test = "send_lat"
sizes = [64]
"""
REAL = (
    'provider = "ssh"',
    'provider = "slurm"',
    'provider = "veth"\nnative = true',
)


def text(testbed: str, tool: str = "command") -> str:
    return PLAN.format(testbed=testbed, tool=tool) + (COMMAND if tool == "command" else PERFTEST)


def plan(testbed: str, tool: str = "command") -> Plan:
    return plan_file.from_toml(text(testbed, tool), "theirs.toml")


@pytest.mark.parametrize("testbed", REAL)
def test_not_on_real_machines_without_permission(testbed: str) -> None:
    with pytest.raises(UsageError, match="runs commands of its own") as caught:
        permission.check(plan(testbed), permitted=False)
    assert "sh -c id" in caught.value.cause
    permission.check(plan(testbed), permitted=True)
    permission.check(plan(testbed, "perftest"), permitted=False)


@pytest.mark.parametrize("provider", ["qemu", "veth"])
def test_virtual_machines_contain_it(provider: str) -> None:
    permission.check(plan(f'provider = "{provider}"'), permitted=False)


def inventory(folder: Path) -> str:
    path = folder / "hosts.toml"
    path.write_text(
        "".join(
            f'[[host]]\nname = "{name}"\nhost = "192.0.2.1"\nnetdev = "eth0"\n'
            for name in ("left", "right")
        )
    )
    return str(path)


def test_ab_refuses_before_it_builds_anything(tmp_path: Path) -> None:
    path = tmp_path / "theirs.toml"
    path.write_text(text('provider = "qemu"'))
    words = ("--plan", str(path), "--inventory", inventory(tmp_path), "--out", str(tmp_path / "ab"))
    done = in_process("ab", "instrumented", "events", *words)
    assert done.returncode == 2, done.stderr
    assert "commands of its own" in done.stderr
    assert not (tmp_path / "ab").exists()


@pytest.mark.parametrize("words", [[], ["--native"]])
def test_run_refuses_before_it_does_anything(tmp_path: Path, words: list[str]) -> None:
    """An option that moves the plan to a real machine is no permission."""
    path = tmp_path / "theirs.toml"
    path.write_text(text('provider = "veth"' if words else 'provider = "ssh"'))
    hosts = [] if words else ["--inventory", inventory(tmp_path)]
    done = in_process("run", str(path), "--out", str(tmp_path / "runs"), *words, *hosts)
    assert done.returncode == 2, done.stderr
    assert "commands of its own" in done.stderr
    assert "--commands" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_folder_is_below_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    (here / "build").mkdir(parents=True)
    (here / "out").symlink_to(tmp_path)
    (here / "in").symlink_to("build")
    monkeypatch.chdir(here)
    assert permission.folder_of_plan("") is None
    assert permission.folder_of_plan("build") == here / "build"
    assert permission.folder_of_plan("in") == here / "build"
    for name in ("out", "..", str(tmp_path), "out/here/../other"):
        with pytest.raises(CellError, match="is not below"):
            permission.folder_of_plan(name)
