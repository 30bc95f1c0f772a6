# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider veth without a machine: command lines, plan keys, and rxestat documents split by end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rocelab.cli.testbed import Provider
from rocelab.errors import CellError, UsageError
from rocelab.measure.probes import run_rxestat
from rocelab.measure.testbed_for_plan import move_plan
from rocelab.plans import plan_file
from rocelab.record import rxestat_document
from rocelab.testbed.node import local
from rocelab.testbed.qemu.machine_spec import NodeSpec, TestbedSpec, interfaces, qemu_argv
from rocelab.testbed.veth import layout
from rocelab.testbed.veth.layout import Layout

DATA = Path(__file__).parents[1] / "data"
ENDS = {"data": 3, "peer": 4}
SPEC = TestbedSpec("t", "6.12", "/image", "tcg", (NodeSpec(1, 2222, 512, 4200),), "veth")


def test_the_machine_has_no_qemu_data_link() -> None:
    argv = qemu_argv(SPEC, SPEC.nodes[0], Path("/state"), ENDS)
    assert "data" not in " ".join(argv)
    assert "data0" not in interfaces(SPEC, SPEC.nodes[0])
    two = replace(SPEC, provider="qemu")
    assert "id=data" in " ".join(qemu_argv(two, two.nodes[0], Path("/state"), ENDS))


def test_icount_has_one_processor_and_one_thread() -> None:
    spec = replace(SPEC, accelerator="icount")
    line = " ".join(qemu_argv(spec, spec.nodes[0], Path("/state"), ENDS))
    assert "-accel tcg,thread=single -icount shift=0" in line
    assert "-smp 1 " in line
    assert replace(SPEC, accelerator="kvm").vcpus > 1


def test_the_spec_survives_json() -> None:
    assert TestbedSpec.from_json(json.loads(json.dumps(SPEC.to_json()))) == SPEC


def test_a_rule_for_the_table_local_always_exists() -> None:
    """Without one a machine receives nothing, not even SSH."""
    for commands in (Layout(4200).make(), Layout(4200, 4, 2).make(), layout.remove()):
        present = 1
        for argv in commands:
            words = " ".join(argv)
            if "lookup local" in words:
                present += 1 if " add " in words else -1
            assert present >= 1


PLAN = '[plan]\nname = "p"\ntransports = ["tcp"]\n[testbed]\n{}\n[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [1]\n'  # noqa: E501


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('provider = "ssh"\nicount = true', "hosts cannot count their instructions"),
        ('provider = "veth"\nlockstep = true', "only two virtual machines"),
        ("nodes = 3\nswitches = 1\nlockstep = true", "only two virtual machines"),
        ("lockstep = true\n[testbed.link]\ndelay_us = 1", "only two virtual machines"),
        ('provider = "veth"\nicount = 1', "neither true nor false"),
        ("native = true", "only provider veth can run on this machine"),
        ('provider = "veth"\nnative = true\nicount = true', "only without icount"),
        ('provider = "vth"', "did you mean 'veth'"),
    ],
)
def test_impossible_testbeds_are_refused(keys: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_file.from_toml(PLAN.format(keys), "p.toml")


def test_options_override_the_plans_provider() -> None:
    plan = plan_file.from_toml(PLAN.format('provider = "veth"\nicount = true'), "p.toml")
    assert plan.testbed.icount
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    moved = move_plan(plan, Provider.QEMU, icount=False, native=False).testbed
    assert (moved.provider, moved.icount) == ("qemu", True)
    demo = move_plan(plan_file.load("demo"), None, icount=True, native=False).testbed
    assert (demo.provider, demo.icount) == ("qemu", True)
    here = move_plan(plan_file.load("demo"), None, icount=False, native=True).testbed
    assert (here.provider, here.icount, here.native) == ("veth", False, True)
    assert move_plan(plan, None, icount=False, native=False) == plan
    with pytest.raises(UsageError, match="only emulated machines count"):
        move_plan(plan, Provider.SSH, icount=True, native=False)
    for provider, icount in ((Provider.QEMU, False), (None, True)):
        with pytest.raises(UsageError, match="both ends on this machine"):
            move_plan(plan, provider, icount=icount, native=True)


@pytest.mark.parametrize(
    ("keys", "provider", "native", "message"),
    [
        ("icount = true", Provider.SSH, False, "icount does not allow provider ssh"),
        ("icount = true", Provider.SLURM, False, "icount does not allow provider slurm"),
        ("icount = true", None, True, "this machine itself, and only without icount"),
        ("lockstep = true", Provider.VETH, False, "lockstep does not allow provider veth"),
        ("lockstep = true", Provider.SSH, False, "lockstep does not allow provider ssh"),
        ("lockstep = true", None, True, "lockstep does not allow this machine itself"),
    ],
)
def test_no_option_drops_what_decides_the_numbers(
    keys: str, provider: Provider | None, native: bool, message: str
) -> None:
    plan = plan_file.from_toml(PLAN.format(keys), "p.toml")
    with pytest.raises(UsageError, match=message):
        move_plan(plan, provider, icount=False, native=native)


def test_a_run_on_this_machine_is_resumed_there() -> None:
    """The plan in run.json says so: `resume` needs no option."""
    plan = move_plan(plan_file.load("demo"), None, icount=False, native=True)
    assert plan_file.from_dict(plan.to_dict(), "run.json").testbed.native
    moved = move_plan(plan, Provider.QEMU, icount=False, native=False).testbed
    assert (moved.provider, moved.native) == ("qemu", False)


@pytest.mark.parametrize(
    ("model", "flags", "accelerator"),
    [
        ("Intel(R) Xeon(R) Gold 6230", "fpu sse2", "native"),
        ("Intel(R) Xeon(R) Gold 6230", "fpu hypervisor", "kvm"),
        ("QEMU TCG CPU version 2.5+", "fpu hypervisor", "tcg"),
        ("QEMU TCG CPU version 2.5+", "fpu", "tcg"),
    ],
)
def test_this_machines_accelerator(model: str, flags: str, accelerator: str) -> None:
    cpuinfo = f"processor\t: 0\nmodel name\t: {model}\nflags\t\t: {flags}\n"
    assert local.accelerator(cpuinfo) == accelerator


def test_a_shared_document_is_split_by_device() -> None:
    one = json.loads((DATA / "rxestat-0.1-write_lat-64.json").read_text())
    other = [{**row, "dev": "rxe1"} for row in one["rows"][:1]]
    events = {"event": "cycles", "count": 9000, "counted_share": 1}
    whole = {**one, "node": "n1+n2", "accelerator": "kvm", "kernel_events": events}
    text = json.dumps({**whole, "rows": [*one["rows"], *other]})
    for node, device, rows in (("n1", "rxe0", len(one["rows"])), ("n2", "rxe1", 1)):
        split = run_rxestat._part(text, node, device)
        part = json.loads(split)
        assert (part["node"], len(part["rows"])) == (node, rows)
        stages = rxestat_document.parse_text(split)
        assert (stages.lost, stages.cycles, stages.machine) == (one["lost"], 9000, "n1+n2")


@pytest.mark.parametrize("text", ["", "[]", '{"rows": 1}', '{"rows": [{}], "packets": []}'])
def test_a_garbled_document_is_an_error(text: str) -> None:
    with pytest.raises(CellError, match="cannot be read"):
        run_rxestat._part(text, "n1", "rxe0")
