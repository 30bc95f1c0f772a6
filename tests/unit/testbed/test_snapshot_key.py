# SPDX-License-Identifier: GPL-2.0-or-later
"""The key of a saved machine: all that decides its state, and nothing of one testbed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rocelab.plans.catalog import Provider
from rocelab.testbed import preparation
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.preparation import Payload
from rocelab.testbed.qemu import snapshot_key
from rocelab.testbed.qemu.machine_spec import NOBODY, NodeSpec, TestbedSpec, streams


@pytest.fixture(autouse=True)
def qemu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    program = tmp_path / "qemu-system-x86_64"
    program.write_text("#!/bin/sh\necho QEMU emulator version 7.2.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return program


@pytest.fixture
def spec(tmp_path: Path) -> TestbedSpec:
    image = tmp_path / "image"
    image.mkdir()
    for name in ("image.json", "vmlinuz", "initramfs.cpio", "root.sqfs"):
        (image / name).write_text(name)
    nodes = tuple(NodeSpec(i, 2000 + i, 1024, 4200) for i in (1, 2))
    return TestbedSpec("a", "6.12", str(image), "icount", nodes)


def key(spec: TestbedSpec, index: int = 0) -> str:
    return snapshot_key.machine(spec, spec.nodes[index])


def test_testbeds_of_the_same_shape_share_their_machines(spec: TestbedSpec) -> None:
    ports = tuple(replace(node, ssh_port=node.ssh_port + 10) for node in spec.nodes)
    assert key(replace(spec, name="b", nodes=ports)) == key(spec)
    saved = tuple(replace(node, snapshot="/somewhere") for node in spec.nodes)
    assert key(replace(spec, nodes=saved)) == key(spec)


def test_an_image_may_be_moved_with_its_content(spec: TestbedSpec, tmp_path: Path) -> None:
    shutil.copytree(spec.image, tmp_path / "moved")
    assert key(replace(spec, image=str(tmp_path / "moved"))) == key(spec)


def test_a_node_keeps_its_key_whatever_else_is_in_the_testbed(spec: TestbedSpec) -> None:
    more = (*spec.nodes, NodeSpec(3, 2003, 1024, 4200))
    switch = NodeSpec(4, 2004, 512, 4200, True)
    assert key(replace(spec, nodes=more, ends=3, switches=1, switch=switch)) == key(spec)


def test_a_node_alone_is_the_first_of_a_pair(spec: TestbedSpec) -> None:
    """So that it is restored from the same snapshot; nobody is at the other end of its links."""
    alone = replace(spec, nodes=spec.nodes[:1], ends=1)
    assert key(alone) == key(spec)
    assert [stream.second for stream in streams(alone)] == [(NOBODY, "data"), (NOBODY, "peer")]


CHANGES: dict[str, Callable[[TestbedSpec], TestbedSpec]] = {
    "accelerator": lambda s: replace(s, accelerator="tcg"),
    "kernel command line": lambda s: replace(s, kernel_parameters="clearcpuid=cx16"),
    "processors": lambda s: replace(s, processors=2),
    "one machine": lambda s: replace(s, provider=Provider.VETH),
    "memory": lambda s: replace(s, nodes=tuple(replace(n, memory_mb=2048) for n in s.nodes)),
    "MTU": lambda s: replace(s, nodes=tuple(replace(n, mtu=1500) for n in s.nodes)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_decides_a_machines_state_is_in_its_key(spec: TestbedSpec, what: str) -> None:
    assert key(CHANGES[what](spec)) != key(spec)
    assert key(spec, 1) != key(spec, 0)


@pytest.mark.parametrize("name", ["image.json", "vmlinuz", "initramfs.cpio", "root.sqfs"])
def test_another_image_is_another_key(spec: TestbedSpec, name: str) -> None:
    before = key(spec)
    (Path(spec.image) / name).write_text("another one")
    assert key(spec) != before


def test_another_qemu_is_another_key(spec: TestbedSpec, qemu: Path) -> None:
    before = key(spec)
    qemu.write_text("#!/bin/sh\necho QEMU emulator version 10.0.0\n")
    assert key(spec) != before


def test_the_hosts_processor_counts_only_where_it_is_seen(
    spec: TestbedSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, real = key(spec), key(replace(spec, accelerator="kvm"))
    monkeypatch.setattr(snapshot_key, "_processor", lambda: ["model name: another"])
    assert key(spec) == counting
    assert key(replace(spec, accelerator="kvm")) != real


def test_what_is_installed_is_in_the_key(tmp_path: Path) -> None:
    module, probe = tmp_path / "rdma_rxe.ko", tmp_path / "rxestat"
    module.write_bytes(b"module")
    probe.write_bytes(b"probe")
    driver = Driver(module, "6.12.1", "abc")

    def key(payload: Payload) -> str:
        return snapshot_key.key_with_preparation("k", preparation.of_nodes(payload).digest)

    keys = [key(Payload(driver, (probe,))), key(Payload(None, (probe,)))]
    keys += [key(Payload(driver, ()))]
    module.write_bytes(b"another module")
    keys += [key(Payload(driver, (probe,)))]
    probe.write_bytes(b"another probe")
    keys += [key(Payload(driver, (probe,)))]
    assert len(set(keys)) == len(keys)
