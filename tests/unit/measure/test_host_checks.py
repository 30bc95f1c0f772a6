# SPDX-License-Identifier: GPL-2.0-or-later
"""What `rocelab doctor --hosts` says of hosts whose answers are wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rocelab.errors import TestbedError
from rocelab.measure import host_checks
from rocelab.measure.data_network import Pings
from rocelab.plans.catalog import TRANSPORTS, Probe
from rocelab.testbed import artifacts
from rocelab.testbed.hosts import prebuilt
from rocelab.testbed.hosts.host_state import HostState
from rocelab.testbed.node import Completed, DataLink, Node
from rocelab.testbed.node.command_node import CommandNode
from rocelab.testbed.node.local import LocalConnection
from rocelab.testbed.ssh.inventory import Host

RELEASE = "6.12.117+deb13-amd64"


def host(name: str, answer: Callable[[tuple[str, ...]], str]) -> Node:
    """A host that prints what `answer` returns."""

    def run(argv: Sequence[str], **_: object) -> Completed:
        return Completed(tuple(argv), 0, answer(tuple(argv)), "")

    node = SimpleNamespace(name=name, run=run)
    node.root = node
    return cast("Node", node)


@pytest.mark.parametrize("transport", ["tcp", "rxe-v2"])
def test_no_host_can_be_logged_into(monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    """Each host says why, and nothing is asked of no host."""
    refused = TestbedError("no login", cause="no key", action="Copy your key.")
    monkeypatch.setattr(host_checks, "_login", lambda *_: refused)
    hosts = cast("Sequence[Host]", [SimpleNamespace(name=name) for name in ("alpha", "beta")])
    with host_checks.open_checks(hosts, TRANSPORTS[transport]) as opened:
        checks = list(opened)
    assert [check.name for check in checks] == ["login alpha", "login beta"]
    for check in checks:
        with pytest.raises(TestbedError, match="no login"):
            check.run()


def test_a_clock_that_is_off() -> None:
    right, wrong = (
        host(name, lambda _, late=late: f"{time.time() + late:.9f}\n")
        for name, late in (("alpha", 0.0), ("beta", 30.0))
    )
    assert "of this machine's" in host_checks.clocks([right])
    with pytest.raises(TestbedError, match=r"clock of beta is \+(29|30)\.\d+ s off") as caught:
        host_checks.clocks([right, wrong])
    assert "timedatectl set-ntp true" in caught.value.action


@pytest.mark.parametrize(
    ("versions", "what"),
    [
        (("rocelab-0123456789ab", ""), "beta does not run the instrumented rdma_rxe"),
        (("rocelab-0123456789ab", None), "beta does not run the instrumented rdma_rxe"),
        (("rocelab-0123456789ab", "rocelab-ba9876543210"), "the hosts run different drivers"),
        (("rocelab-ba9876543210",) * 2, "this checkout has built rocelab-0123456789ab"),
    ],
)
def test_a_driver_that_is_not_this_ones(
    monkeypatch: pytest.MonkeyPatch, versions: tuple[str | None, ...], what: str
) -> None:
    loaded = dict(zip(("alpha", "beta"), versions, strict=True))
    built = prebuilt.Built(artifacts.Driver(Path(), RELEASE, "0123456789ab"), (), Path())
    # where the hosts differ, this machine has built for neither
    here = built if len(set(versions)) == 1 else None
    monkeypatch.setattr(prebuilt, "find", lambda _: here)
    monkeypatch.setattr(
        host_checks.host_state,
        "read_loaded",
        lambda node: HostState(RELEASE, loaded[node.name], (), ()),
    )
    nodes = [host(name, lambda _: "") for name in loaded]
    with pytest.raises(TestbedError, match=what) as caught:
        host_checks.driver(nodes)
    assert "rocelab hosts prepare" in caught.value.action


def test_probes_that_are_missing_or_differ() -> None:
    def printed(version: str, *names: str) -> str:
        return "".join(f"{name}: {name} (rocelab) {version}\n" for name in names)

    names = tuple(Probe)
    good = host("alpha", lambda _: printed("0.1.0", *names))
    assert host_checks.probes([good, good]).startswith("rxestat 0.1.0, ")
    lacking = printed("0.1.0", *names[1:]) + "rxestat: sh: 1: rxestat: not found\n"
    with pytest.raises(TestbedError, match="beta has no rxestat"):
        host_checks.probes([good, host("beta", lambda _: lacking)])
    unable = "rxestat: error while loading shared libraries: libmicrohttpd.so.12: cannot open it"
    broken = printed("0.1.0", *names[1:]) + f"rxestat: {unable}\n"
    with pytest.raises(TestbedError, match="beta has no rxestat") as caught:
        host_checks.probes([good, host("beta", lambda _: broken)])
    assert "libmicrohttpd" in caught.value.cause
    with pytest.raises(TestbedError, match="different probes"):
        host_checks.probes([good, host("beta", lambda _: printed("0.2.0", *names))])


@dataclass(frozen=True)
class WithPrograms(LocalConnection):
    """This machine as a host that has only the programs of a folder."""

    folder: str = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["env", f"PATH={self.folder}", *argv]


def pinging(folder: Path, ping: str | None) -> CommandNode:
    """A host whose ping(8) is this script of sh(1), None for a host without."""
    folder.mkdir()
    (folder / "sh").symlink_to("/bin/sh")
    if ping is not None:
        (folder / "ping").write_text(f"#!/bin/sh\necho asked >>{folder}/asked\n{ping}\n")
        (folder / "ping").chmod(0o755)
    link = DataLink("data0", f"10.44.0.{len(folder.name)}", "", 1500)
    return CommandNode(folder.name, link, WithPrograms(is_root=True, folder=str(folder)))


def test_a_host_without_ping(tmp_path: Path) -> None:
    """Not what the network is blamed for."""
    pings = Pings([pinging(tmp_path / "a", "exit 0"), pinging(tmp_path / "bb", None)])
    for check in (pings.data_network, pings.mtu_end_to_end):
        with pytest.raises(TestbedError, match="bb has no ping") as caught:
            check()
        assert "apt-get install iputils-ping" in caught.value.action


def test_what_gets_through(tmp_path: Path) -> None:
    """One packet is enough where all is well; what is too large is told from what is silent."""
    good = [pinging(tmp_path / name, "exit 0") for name in ("a", "bb")]
    pings = Pings(good)
    assert pings.data_network() == "a 10.44.0.1, bb 10.44.0.2"
    assert pings.mtu_end_to_end() == "1500 bytes"
    assert (tmp_path / "a/asked").read_text() == "asked\n"

    small = pinging(tmp_path / "ccc", 'case "$*" in *"-s 56 "*) exit 0 ;; esac; exit 1')
    pings = Pings([good[0], small])
    assert pings.data_network()
    with pytest.raises(TestbedError, match="packets of 1500 bytes do not get from ccc to a"):
        pings.mtu_end_to_end()

    silent = pinging(tmp_path / "dddd", "exit 1")
    with pytest.raises(TestbedError, match=r"dddd gets no answer from a at 10\.44\.0\.1"):
        Pings([good[0], silent]).data_network()
    with pytest.raises(TestbedError, match="packets of 1500 bytes do not get from dddd to a"):
        Pings([good[0], silent]).mtu_end_to_end()
