# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines attached to a switch: both ends of each link match, captures of ports are merged."""

from __future__ import annotations

import json
import re
import struct
from itertools import chain, count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocelab.errors import TestbedError
from rocelab.testbed import capture_parts
from rocelab.testbed.qemu import filter_dump
from rocelab.testbed.qemu.machine_spec import (
    NodeSpec,
    TestbedSpec,
    host_names,
    interfaces,
    peer_port_mac,
    port_mac,
    qemu_argv,
    streams,
)

STATE = Path("/state")


def spec(nodes: int, switches: int) -> TestbedSpec:
    between = NodeSpec(nodes + 1, 2200, 512, 4200, True) if switches else None
    machines = tuple(NodeSpec(i, 2200 + i, 1024, 4200) for i in range(1, nodes + 1))
    return TestbedSpec(
        "t", "6.12", "/image", "tcg", machines, ends=nodes, switches=switches, switch=between
    )


def descriptors(testbed: TestbedSpec) -> dict[str, dict[str, int]]:
    """Return a number for each machine's end of each stream, as the supervisor has descriptors."""
    numbers = count(3)
    ends: dict[str, dict[str, int]] = {node.name: {} for node in testbed.machines}
    for machine, netdev in chain.from_iterable(streams(testbed)):
        ends[machine][netdev] = next(numbers)
    return ends


@pytest.mark.parametrize(("nodes", "switches"), [(2, 0), (2, 1), (3, 1), (8, 3)])
def test_every_machine_has_a_netdev_for_each_of_its_streams(nodes: int, switches: int) -> None:
    whole = spec(nodes, switches)
    ends = descriptors(whole)
    assert sum(map(len, ends.values())) == 2 * len(streams(whole))
    argvs = {
        node.name: " ".join(qemu_argv(whole, node, STATE, ends[node.name]))
        for node in whole.machines
    }
    for name, argv in argvs.items():
        ends_of_streams = re.findall(
            r"stream,id=(\w+),server=off,addr\.type=fd,addr\.str=(\d+)", argv
        )
        assert {netdev: int(number) for netdev, number in ends_of_streams} == ends[name]
        assert sorted(re.findall(r"virtio-net-pci,netdev=(\w+)", argv)) == sorted(
            ["ctl", *ends[name]]
        )
    # every MAC address is unique
    macs = re.findall(r"mac=(\S{17})", " ".join(argvs.values()))
    assert len(set(macs)) == len(macs)
    assert {*map(port_mac, whole.nodes), *map(peer_port_mac, whole.nodes)} <= set(macs) or not (
        switches
    )


def test_a_switch_has_an_address_only_on_its_control_network() -> None:
    whole = spec(3, 1)
    assert whole.switch is not None
    assert re.findall(r"^(\w+) ", interfaces(whole, whole.switch), re.MULTILINE) == ["ctl0"]
    assert host_names(whole) == {"n1": "10.44.0.1", "n2": "10.44.0.2", "n3": "10.44.0.3"}


def test_a_testbeds_spec_survives_json() -> None:
    for whole in (spec(2, 0), spec(3, 2)):
        assert TestbedSpec.from_json(json.loads(json.dumps(whole.to_json()))) == whole


def pcap(times: list[tuple[int, int]]) -> bytes:
    head = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(
        struct.pack("=IIII", seconds, micros, 4, 60) + struct.pack("=I", micros)
        for seconds, micros in times
    )


times = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 999_999)), max_size=20).map(sorted)


@given(st.lists(times, min_size=1, max_size=4))
def test_captures_of_ports_are_merged_in_order_of_time(
    tmp_path_factory: pytest.TempPathFactory, ports: list[list[tuple[int, int]]]
) -> None:
    folder = tmp_path_factory.mktemp("ports")
    parts = [folder / str(number) for number, _ in enumerate(ports)]
    for part, each in zip(parts, ports, strict=True):
        part.write_bytes(pcap(each))
    capture_parts.merge(parts, folder / "wire.pcap")
    merged = (folder / "wire.pcap").read_bytes()
    assert merged[:24] == pcap([])
    records = list(struct.iter_unpack("=IIIII", merged[24:]))
    assert all(one[:2] <= other[:2] for one, other in pairwise(records))
    assert sorted((s, m) for s, m, _, _, _ in records) == sorted(t for each in ports for t in each)
    assert all(record[1] == record[4] for record in records)


@pytest.mark.parametrize("cut", [3, 17, 21])
def test_a_truncated_capture_of_a_port_is_an_error(tmp_path: Path, cut: int) -> None:
    part = tmp_path / "port"
    part.write_bytes(pcap([(0, 1), (0, 2)])[:-cut])
    with pytest.raises(TestbedError, match="not complete"):
        capture_parts.merge([part], tmp_path / "wire.pcap")


def test_dumps_begin_within_one_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dump's times are relative to the whole second in which it began: all need the same one."""
    clock = iter([10.9, 11.0, 11.1, 11.2])
    executed: list[tuple[str, str]] = []
    monkeypatch.setattr(filter_dump.time, "time", lambda: next(clock))
    monkeypatch.setattr(
        filter_dump, "execute", lambda _qmp, command, words: executed.append((command, words["id"]))
    )
    parts = [tmp_path / "1", tmp_path / "2"]
    for part in parts:
        part.write_bytes(pcap([]))
    filter_dump.add_in_one_second(tmp_path, ["a", "b"], ["data1", "data2"], parts, 64)
    assert [f"{c} {n}" for c, n in executed] == [
        *("object-add a", "object-add b", "object-del a", "object-del b"),
        *("object-add a", "object-add b"),
    ]
