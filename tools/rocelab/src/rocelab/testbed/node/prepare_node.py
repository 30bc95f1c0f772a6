# SPDX-License-Identifier: GPL-2.0-or-later
"""Install the instrumented driver and the probes on a node, and prove that they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocelab.errors import TestbedError, UsageError
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.node.endpoint import Endpoint, machine_of, machines
from rocelab.testbed.node.interface import DataLink, Node
from rocelab.testbed.node.parallel import at_once

DEVICE = "rxe0"
"""Name of the rxe device on a node that does not share its machine."""
PROBE_DIR = "/usr/local/bin"
_PARAMETERS = "/sys/module/rdma_rxe/parameters"
_ROCE_V1 = f"{_PARAMETERS}/roce_v1"
_WITH_ROCE_V1 = f"""
modprobe rdma_rxe
before=$(cat {_ROCE_V1}) && echo Y >{_ROCE_V1} || exit
"$@"
code=$?
echo "$before" >{_ROCE_V1}
exit $code
"""


# depmod reads all modules, which takes longer than booting under emulation. It changes nothing if
# the module was already in updates/, as in our images, and asks for the same others.
_NEW_MODULE = "/run/rocelab/rdma_rxe.ko"
_INSTALL = """
set -e
new=$1 target=$2
shift 2
asks() { for key in depends softdep alias; do modinfo -F $key "$1"; done; }
listed=$(modinfo -n rdma_rxe 2>/dev/null) || listed=
known=no
if [ "${listed##*/updates/}" = rdma_rxe.ko ] && [ "$(asks "$target")" = "$(asks "$new")" ]; then
	known=yes
fi
[ ! -d /sys/module/rdma_rxe ] || rmmod rdma_rxe
mkdir -p "${target%/*}"
mv "$new" "$target"
[ $known = yes ] || depmod
modprobe rdma_rxe "$@"
"""


def device_of(node: Node) -> str:
    """Return the name of the node's rxe device."""
    return node.device if isinstance(node, Endpoint) else DEVICE


def _updates(release: str) -> str:
    return f"/lib/modules/{release}/updates/rdma_rxe.ko"


def remove_device(node: Node) -> None:
    """Delete the rxe device, if there is one."""
    node.root.run(["rdma", "link", "delete", device_of(node)], check=False)


def add_device(node: Node, *, roce_v1: bool = False) -> None:
    """Add the rxe device to the data interface; this loads the driver if necessary.

    With `roce_v1`, which the driver must support, the device also has RoCE v1 GIDs until it is
    removed.
    """
    name, netdev = device_of(node), node.link.netdev
    add = ("rdma", "link", "add", name, "type", "rxe", "netdev", netdev)
    if roce_v1:
        node.root.run(["sh", "-c", _WITH_ROCE_V1, "sh", *add])
    else:
        node.root.run(add)


def check_supports_roce_v1(node: Node) -> None:
    """Load the driver if necessary. Raises TestbedError if its devices cannot have v1 GIDs."""
    node.root.run(["modprobe", "rdma_rxe"])
    if node.run(["test", "-e", _ROCE_V1], check=False).returncode:
        raise TestbedError(
            f"the driver on {node.name} does not support RoCE v1",
            cause="it is the stock driver, or from an older rocelab",
            action="Load ours there (kernel/README.md), or remove rxe-v1 from the plan.",
        )


def roce_v1_default(node: Node) -> Sequence[str]:
    """Return the command that gives new devices RoCE v1 GIDs or not, as it is now.

    For a lease: a run that is killed may leave it changed. Raises TestbedError as
    `check_supports_roce_v1` does.
    """
    check_supports_roce_v1(node)
    now = node.run(["cat", _ROCE_V1]).stdout.strip()
    return ("sh", "-c", 'echo "$1" >"$2"', "sh", "Y" if now == "Y" else "N", _ROCE_V1)


def has_roce_v1(node: Node) -> bool:
    """Whether the rxe device has RoCE v1 GIDs."""
    types = f"/sys/class/infiniband/{device_of(node)}/ports/1/gid_attrs/types"
    # the first ten, as in gid.find; entries without a GID cannot be read
    script = 'grep -qsx "IB/RoCE v1" "$1"/[0-9]'
    return node.run(["sh", "-c", script, "sh", types], check=False).returncode == 0


def offer_roce_v1(nodes: Sequence[Node]) -> None:
    """Make sure that the rxe devices have RoCE v1 GIDs; recreate those that do not."""

    def one(machine: Node) -> None:
        # in sequence: nodes of one machine share a module and its parameter
        for node in (each for each in nodes if machine_of(each) is machine):
            if not has_roce_v1(node):
                check_supports_roce_v1(node)
                remove_device(node)
                add_device(node, roce_v1=True)

    at_once(one, machines(nodes))


def unload(node: Node) -> None:
    """Unload rdma_rxe if it is loaded. Raises TestbedError while it is in use."""
    if node.run(["test", "-d", "/sys/module/rdma_rxe"], check=False).returncode == 0:
        node.root.run(["rmmod", "rdma_rxe"])


def install_driver(node: Node, driver: Driver, parameters: Sequence[tuple[str, str]] = ()) -> None:
    """Install a module in updates/, where depmod prefers it to the distribution's, and load it.

    `parameters` are the module's, by name. Raises UsageError if it does not have one of them.
    """
    release = node.run(["uname", "-r"]).stdout.strip()
    if release != driver.release:
        raise TestbedError(
            f"the driver was built for {driver.release}, but {node.name} runs {release}",
            cause="the image and the driver are from different builds",
            action="Run `make image module` again.",
        )
    remove_device(node)
    node.root.put(driver.module, _NEW_MODULE)
    settings = [f"{name}={value}" for name, value in parameters]
    where = (_NEW_MODULE, _updates(release))
    node.root.run(("sh", "-c", _INSTALL, "sh", *where, *settings), timeout=300)
    check_driver(node, driver)
    check_parameters(node, parameters)


def check_parameters(node: Node, parameters: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError unless the loaded driver has these parameters."""
    for name, _ in parameters:  # the kernel only logs that it does not know one
        if node.run(["test", "-e", f"{_PARAMETERS}/{name}"], check=False).returncode:
            raise UsageError(
                f"the driver has no parameter {name}",
                cause="its name is misspelt, or the variant does not have it",
                action="`modinfo -p` on the module lists them.",
            )


def driver_version(node: Node) -> str:
    """Load the driver if necessary and return its version, which is empty for the stock driver."""
    script = "modprobe rdma_rxe 2>/dev/null; cat /sys/module/rdma_rxe/version"
    return node.root.run(["sh", "-c", script], check=False).stdout.strip()


def check_driver(node: Node, driver: Driver) -> None:
    """Prove by path, version and events that exactly this module is loaded."""
    path = node.run(["modinfo", "-n", "rdma_rxe"]).stdout.strip()
    version = node.run(["cat", "/sys/module/rdma_rxe/version"], check=False).stdout.strip()
    events = node.root.run(
        ["test", "-e", "/sys/kernel/tracing/events/rxe/rxe_tx_packet"], check=False
    ).returncode
    facts = f"modinfo names {path}, its version is {version or 'absent'}, " + (
        "and it has our events" if events == 0 else "and it has no events"
    )
    instrumented = bool(driver.patch_id)
    good = path.endswith("/updates/rdma_rxe.ko") and (events == 0) == instrumented
    if not good or (instrumented and driver.patch_id not in version):
        raise TestbedError(
            f"{node.name} does not run the driver that was installed",
            cause=facts,
            action="Unload rdma_rxe there, run `depmod`, and try again.",
        )


def install_probes(node: Node, probes: Sequence[Path]) -> None:
    """Copy the probes and benchmarks to the node."""
    for probe in probes:
        node.root.put(probe, f"{PROBE_DIR}/{probe.name}", mode=0o755)


def prepare(
    nodes: Sequence[Node],
    driver: Driver,
    probes: Sequence[Path],
    parameters: Sequence[tuple[str, str]] = (),
) -> None:
    """Install what nodes need for measuring and add their rxe devices, on all machines at once.

    For `parameters` see `install_driver`.
    """

    def one(machine: Node) -> None:
        its_nodes = [node for node in nodes if machine_of(node) is machine]
        for node in its_nodes:
            remove_device(node)
        install_driver(machine, driver, parameters)
        install_probes(machine, probes)
        for node in its_nodes:
            add_device(node)

    at_once(one, machines(nodes))


def keep_neighbours(nodes: Sequence[Node]) -> None:
    """Give machines that are one node each permanent neighbour entries of the others.

    A peer's entry that has to be confirmed within five seconds sends packets on a slower path, so
    that the same packet would cost more at one of two nodes, and from some moment on would not.
    """

    def one(node: Node) -> None:
        for other in nodes:
            if other is not node:
                node.root.run(permanent_neighbour(node.link, other.link))

    at_once(one, nodes)


def permanent_neighbour(own: DataLink, peer: DataLink) -> tuple[str, ...]:
    """Return the command that gives an interface a neighbour entry that stays."""
    entry = (peer.ipv4, "lladdr", peer.mac, "dev", own.netdev, "nud", "permanent")
    return ("ip", "neigh", "replace", *entry)
