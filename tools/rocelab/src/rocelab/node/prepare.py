# SPDX-License-Identifier: GPL-2.0-or-later
"""Put the instrumented driver and the probes on a node, and prove that they are in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocelab.artifacts import Driver
from rocelab.errors import TestbedError
from rocelab.node.base import Node
from rocelab.node.endpoint import Endpoint, machine_of, machines
from rocelab.node.parallel import at_once

DEVICE = "rxe0"
"""Name of the rxe device on the data interface of a node that is a machine of its own."""
PROBE_DIR = "/usr/local/bin"
_ROCE_V1 = "/sys/module/rdma_rxe/parameters/roce_v1"


def device_of(node: Node) -> str:
    """Name of the node's rxe device."""
    return node.device if isinstance(node, Endpoint) else DEVICE


def _updates(release: str) -> str:
    return f"/lib/modules/{release}/updates/rdma_rxe.ko"


def remove_device(node: Node) -> None:
    """Delete the rxe device; nothing happens if there is none."""
    node.root.run(["rdma", "link", "delete", device_of(node)], check=False)


def add_device(node: Node, *, roce_v1: bool = False) -> None:
    """Make the rxe device on the data interface (the driver is loaded if it was not).

    With `roce_v1` it has GIDs of RoCE v1, too, for as long as it is there.
    """
    if roce_v1:
        node.root.run(["modprobe", "rdma_rxe"])
        if node.run(["test", "-e", _ROCE_V1], check=False).returncode:
            raise TestbedError(
                f"the driver on {node.name} does not speak RoCE v1",
                cause="it is the stock one, or of an older rocelab",
                action="load ours there (kernel/README.md), or take rxe-v1 out of the plan",
            )
        node.root.run(["tee", _ROCE_V1], stdin="Y\n")
    try:
        name, netdev = device_of(node), node.link.netdev
        node.root.run(["rdma", "link", "add", name, "type", "rxe", "netdev", netdev])
    finally:
        if roce_v1:
            node.root.run(["tee", _ROCE_V1], stdin="N\n")


def offer_roce_v1(nodes: Sequence[Node]) -> None:
    """See to it that the rxe devices have GIDs of RoCE v1; those that have not are made anew."""

    for node in nodes:  # one after the other: two may share a module, and its parameter
        types = f"/sys/class/infiniband/{device_of(node)}/ports/1/gid_attrs/types"
        # entries without a GID cannot be read: grep's status says so, its output is good
        listing = node.run(["grep", "-rhs", "", types], check=False).stdout
        if "IB/RoCE v1" not in listing.splitlines():
            remove_device(node)
            add_device(node, roce_v1=True)


def unload(node: Node) -> None:
    """Unload rdma_rxe if it is loaded. Raises TestbedError while something holds it."""
    if node.run(["test", "-d", "/sys/module/rdma_rxe"], check=False).returncode == 0:
        node.root.run(["rmmod", "rdma_rxe"])


def install_driver(node: Node, driver: Driver) -> None:
    """Install a built module to updates/, where depmod prefers it to the distribution's."""
    release = node.run(["uname", "-r"]).stdout.strip()
    if release != driver.release:
        raise TestbedError(
            f"the driver was built for {driver.release}, {node.name} runs {release}",
            cause="image and driver are of different builds",
            action="run `make image module` again",
        )
    remove_device(node)
    unload(node)
    target = _updates(release)
    node.root.run(["mkdir", "-p", str(Path(target).parent)])
    node.root.put(driver.module, target)
    node.root.run(["depmod", release], timeout=300)
    node.root.run(["modprobe", "rdma_rxe"])
    check_driver(node, driver)


def driver_version(node: Node) -> str:
    """Version of the instrumented driver that is, or now was, loaded; empty for the stock one."""
    node.root.run(["modprobe", "rdma_rxe"], check=False)
    return node.run(["cat", "/sys/module/rdma_rxe/version"], check=False).stdout.strip()


def check_driver(node: Node, driver: Driver) -> None:
    """Prove by path, version and events that this very module is loaded."""
    path = node.run(["modinfo", "-n", "rdma_rxe"]).stdout.strip()
    version = node.run(["cat", "/sys/module/rdma_rxe/version"], check=False).stdout.strip()
    events = node.root.run(
        ["test", "-e", "/sys/kernel/tracing/events/rxe/rxe_tx_packet"], check=False
    ).returncode
    found = f"modinfo names {path}, its version is {version or 'absent'}, " + (
        "its events are there" if events == 0 else "it has no events"
    )
    instrumented = bool(driver.patch_id)
    good = path.endswith("/updates/rdma_rxe.ko") and (events == 0) == instrumented
    if not good or (instrumented and driver.patch_id not in version):
        raise TestbedError(
            f"{node.name} does not run the driver that was installed",
            cause=found,
            action="unload rdma_rxe there, run `depmod`, and try again",
        )


def install_probes(node: Node, probes: Sequence[Path]) -> None:
    """Copy the programs of probes and benchmarks."""
    for probe in probes:
        node.root.put(probe, f"{PROBE_DIR}/{probe.name}", mode=0o755)


def prepare(nodes: Sequence[Node], driver: Driver, probes: Sequence[Path]) -> None:
    """Everything that nodes need before a benchmark may run on them, on all machines at once."""

    def one(machine: Node) -> None:
        on_it = [node for node in nodes if machine_of(node) is machine]
        for node in on_it:
            remove_device(node)
        install_driver(machine, driver)
        install_probes(machine, probes)
        for node in on_it:
            add_device(node)

    at_once(one, machines(nodes))
