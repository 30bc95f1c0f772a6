# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of accelerators, row by row, and what is chosen from it."""

from __future__ import annotations

import os
import typing
from dataclasses import replace
from pathlib import Path

import pytest

from rocelab import accelerators
from rocelab.testbed.qemu import accelerator_probe, machine_spec, supervisor
from rocelab.testbed.qemu.machine_spec import NodeSpec, TestbedSpec

SPEC = TestbedSpec("t", "6.12", "/image", "kvm", (NodeSpec(1, 2201, 1024, 4200),))
ENDS = {"data": 3, "peer": 4}
OPTIONS = {
    "kvm": "-cpu host -accel kvm -smp",
    "icount": "-cpu max,-erms,-fsrm -accel tcg,thread=single -icount shift=0,sleep=on -seed 1 "
    "-rtc base=2026-01-01,clock=vm -smp",
    "lockstep": "-cpu max,-erms,-fsrm -accel tcg,thread=single -icount shift=0,sleep=off -seed 1 "
    "-rtc base=2026-01-01,clock=vm -smp",
    "tcg": "-cpu max,-erms,-fsrm -accel tcg -smp",
}


def test_every_name_has_a_row() -> None:
    assert set(accelerators.ACCELERATORS) == set(typing.get_args(accelerators.Name))


@pytest.mark.parametrize("name", OPTIONS)
def test_qemu_gets_the_options_of_the_row(name: accelerators.Name) -> None:
    spec = replace(SPEC, accelerator=name)
    line = " ".join(machine_spec.qemu_argv(spec, spec.nodes[0], Path("/state"), ENDS))
    assert OPTIONS[name] in line


def test_machines_in_lockstep_send_by_virtual_timers_to_the_plugin() -> None:
    nodes = (NodeSpec(1, 2201, 1024, 4200), NodeSpec(2, 2202, 1024, 4200))
    spec = replace(SPEC, accelerator="lockstep", nodes=nodes, lockstep="/so,1")
    for node in nodes:
        argv = machine_spec.qemu_argv(spec, node, Path("/state"), ENDS)
        assert argv[argv.index("-plugin") + 1] == (
            f"file=/so,,1,end={node.index},quantum=20000,shared=/state/lockstep,"
            f"stream=/state/data{node.index}.sock"
        )
        (data,) = (word for word in argv if "netdev=data" in word)
        assert "tx=timer,x-txtimer=100,ioeventfd=off" in data
        (link,) = (word for word in argv if word.startswith("stream,id=data"))
        assert link.endswith(f"server=on,addr.type=unix,addr.path=/state/data{node.index}.sock")


@pytest.mark.parametrize("accelerator", ["icount", "lockstep"])
@pytest.mark.parametrize("allowed", [{0, 1}, {2, 5, 7}, {3}])
def test_an_emulated_machine_stays_on_one_processor(
    allowed: set[int], accelerator: accelerators.Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its peer is on another one, if there is one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
    nodes = tuple(NodeSpec(index, 2200 + index, 1024, 4200) for index in (1, 2))
    for name in ("default", "demo"):
        spec = replace(SPEC, name=name, accelerator=accelerator, nodes=nodes)
        commands = [supervisor.processor(spec, node) for node in nodes]
        assert {command[:2] for command in commands} == {("taskset", "--cpu-list")}
        chosen = {int(command[2]) for command in commands}
        assert chosen <= allowed
        assert len(chosen) == min(2, len(allowed))
    alone = replace(SPEC, accelerator=accelerator)
    for spec in (alone, replace(SPEC, nodes=nodes), replace(SPEC, accelerator="tcg", nodes=nodes)):
        assert supervisor.processor(spec, nodes[0]) == ()


def test_processors_run_in_parallel_only_where_they_can() -> None:
    pair = replace(SPEC, provider="veth")
    assert [replace(pair, accelerator=name).vcpus for name in OPTIONS] == [3, 1, 1, 1]
    assert [replace(SPEC, accelerator=name).vcpus for name in OPTIONS] == [1, 1, 1, 1]


def test_only_instructions_of_emulated_nodes_are_counted() -> None:
    rows = accelerators.ACCELERATORS.values()
    assert {row.name for row in rows if row.is_real_time} == {"native", "kvm"}
    assert {row.name for row in rows if row.counts_instructions} == {"icount", "lockstep"}
    assert {row.name for row in rows if row.mpi_launch_seconds == 20} == {"native", "kvm"}


def test_an_unknown_accelerator_is_emulation() -> None:
    odd = accelerators.of("quantum")
    assert accelerators.is_emulated("quantum")
    assert not odd.counts_instructions
    assert "does not know" in odd.caption


@pytest.mark.parametrize(("works", "chosen"), [(True, "kvm"), (False, "icount")])
def test_emulation_counts_instructions(
    works: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accelerator_probe, "_kvm_works", lambda _: works)
    assert accelerator_probe.choose(Path("/image")) == chosen
