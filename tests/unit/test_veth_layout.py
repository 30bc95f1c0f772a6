# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider veth without a machine: its command lines, its plan keys, its part of a document."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rocelab.bench import plan_file
from rocelab.cli import run
from rocelab.cli.testbed import Provider
from rocelab.errors import CellError, UsageError
from rocelab.node import local
from rocelab.provider.qemu.spec import NodeSpec, TestbedSpec, guest_config, qemu_argv
from rocelab.provider.veth import layout
from rocelab.provider.veth.layout import Layout
from rocelab.run import probes, stages

DATA = Path(__file__).parent / "data"
SPEC = TestbedSpec("t", "6.12", "/image", "tcg", (NodeSpec(1, 2222, 512, 4200),), "veth")


def test_the_machine_has_no_data_link_of_qemu() -> None:
    argv = qemu_argv(SPEC, SPEC.nodes[0], Path("/state"))
    assert "data" not in " ".join(argv)
    assert "data0" not in guest_config(SPEC, SPEC.nodes[0])
    two = replace(SPEC, provider="qemu")
    assert "id=data" in " ".join(qemu_argv(two, two.nodes[0], Path("/state")))


def test_icount_has_one_processor_and_one_thread() -> None:
    spec = replace(SPEC, accelerator="icount")
    line = " ".join(qemu_argv(spec, spec.nodes[0], Path("/state")))
    assert "-accel tcg,thread=single -icount shift=0" in line
    assert "-smp 1 " in line
    assert replace(SPEC, accelerator="kvm").vcpus > 1


def test_the_spec_survives_its_file() -> None:
    assert TestbedSpec.from_json(json.loads(json.dumps(SPEC.to_json()))) == SPEC


def test_the_table_local_is_never_out_of_reach() -> None:
    """Without it a machine hears nothing, not even ssh."""
    for commands in (Layout(4200).make(), Layout(4200, 4, 2).make(), layout.remove()):
        present = 1
        for argv in commands:
            words = " ".join(argv)
            if "lookup local" in words:
                present += 1 if " add " in words else -1
            assert present >= 1


PLAN = '[plan]\nname = "p"\ntransports = ["tcp"]\n[testbed]\n{}\n[[benchmark]]\ntool = "qperf"\ntest = "tcp_lat"\nsizes = [1]\n'  # noqa: E501


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("icount = true", "provider veth only"),
        ('provider = "veth"\nicount = 1', "neither true nor false"),
        ("native = true", "with provider veth only"),
        ('provider = "veth"\nnative = true\nicount = true', "counts no instructions"),
        ('provider = "vth"', "did you mean 'veth'"),
    ],
)
def test_plans_that_cannot_be(keys: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan_file.from_toml(PLAN.format(keys), "p.toml")


def test_a_plan_can_count_and_options_move_it() -> None:
    plan = plan_file.from_toml(PLAN.format('provider = "veth"\nicount = true'), "p.toml")
    assert plan.testbed.icount
    assert plan_file.from_dict(plan.to_dict(), "run.json") == plan
    moved = run.elsewhere(plan, Provider.QEMU, icount=False, native=False).testbed
    assert (moved.provider, moved.icount) == ("qemu", False)
    demo = run.elsewhere(plan_file.load("demo"), None, icount=True, native=False).testbed
    assert (demo.provider, demo.icount) == ("veth", True)
    here = run.elsewhere(plan, None, icount=False, native=True).testbed
    assert (here.provider, here.icount, here.native) == ("veth", False, True)
    assert run.elsewhere(plan, None, icount=False, native=False) == plan
    with pytest.raises(UsageError, match="one machine"):
        run.elsewhere(plan, Provider.QEMU, icount=True, native=False)
    for provider, icount in ((Provider.QEMU, False), (None, True)):
        with pytest.raises(UsageError, match="this machine itself"):
            run.elsewhere(plan, provider, icount=icount, native=True)


def test_a_run_on_this_machine_leads_back_to_it() -> None:
    """The plan in run.json says so: what resumes it needs no option."""
    plan = run.elsewhere(plan_file.load("demo"), None, icount=False, native=True)
    assert plan_file.from_dict(plan.to_dict(), "run.json").testbed.native
    moved = run.elsewhere(plan, Provider.QEMU, icount=False, native=False).testbed
    assert (moved.provider, moved.native) == ("qemu", False)


@pytest.mark.parametrize(
    ("model", "flags", "found"),
    [
        ("Intel(R) Xeon(R) Gold 6230", "fpu sse2", "native"),
        ("Intel(R) Xeon(R) Gold 6230", "fpu hypervisor", "kvm"),
        ("QEMU TCG CPU version 2.5+", "fpu hypervisor", "tcg"),
        ("QEMU TCG CPU version 2.5+", "fpu", "tcg"),
    ],
)
def test_what_executes_this_machine(model: str, flags: str, found: str) -> None:
    assert local.executes(f"processor\t: 0\nmodel name\t: {model}\nflags\t\t: {flags}\n") == found


def test_a_shared_document_is_split_by_device(tmp_path: Path) -> None:
    one = json.loads((DATA / "rxestat-0.1-write_lat-64.json").read_text())
    other = [{**row, "dev": "rxe1"} for row in one["rows"][:1]]
    text = json.dumps({**one, "rows": [*one["rows"], *other]})
    for node, device, rows in (("n1", "rxe0", len(one["rows"])), ("n2", "rxe1", 1)):
        part = json.loads(probes._part(text, node, device))
        assert (part["node"], len(part["rows"])) == (node, rows)
        (tmp_path / stages.file_name(node)).write_text(json.dumps(part))
        assert stages.read(tmp_path / stages.file_name(node)).lost == one["lost"]


@pytest.mark.parametrize("text", ["", "[]", '{"rows": 1}', '{"rows": [{}], "packets": []}'])
def test_a_garbled_document_is_an_error(text: str) -> None:
    with pytest.raises(CellError, match="cannot be read"):
        probes._part(text, "n1", "rxe0")
