# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the instrumented driver and the probes on a host, for its own kernel, and load them."""

from __future__ import annotations

from collections.abc import Callable

from rocelab.errors import TestbedError
from rocelab.testbed.hosts import driver_exchange, host_build, host_state, prebuilt
from rocelab.testbed.hosts.host_build import MODULE_TOOLS, SBIN, make
from rocelab.testbed.hosts.own_benchmarks import OWN_BENCHMARKS, OwnBenchmark
from rocelab.testbed.node import Node

Say = Callable[[str], None]
_TOOLS = MODULE_TOOLS | {"clang": "clang", "bpftool": "bpftool", "rdma": "iproute2"}


def prepare(node: Node, say: Say) -> None:
    """Prepare one host, or update the driver and the probes on a prepared one.

    They are built on the host, as the user, in a temporary folder, unless this checkout has built
    them for the host's exact kernel. They are installed as root, after the host's state was saved.
    Raises MissingError when the host lacks a tool, TestbedError when a build fails or the loaded
    driver is in use.
    """
    install(node, say)
    version = host_state.read(node).version
    if not version:
        raise TestbedError(
            f"{node.name} still runs its stock rdma_rxe",
            cause="modprobe prefers another module to ours",
            action=f"On {node.name}: look at `modinfo -n rdma_rxe`.",
        )
    say(f"{node.name}: {version}, probes in /usr/local/sbin")


def install(node: Node, say: Say) -> None:
    """Save the host's state, install driver and probes, and load the driver; see `prepare`."""
    benchmarks: list[OwnBenchmark] = []
    built = prebuilt.find(node.run(["uname", "-r"]).stdout.strip())
    if built is None:
        host_build.check_tools(node, _TOOLS)
    with host_build.work_folder(node) as work:
        host_build.send_sources(node, work)
        if built is None:
            say(f"{node.name}: building driver and probes for its kernel")
            make(node, work, "kernel")
            make(node, work, "ebpf")
            benchmarks = _buildable(node, say)
            for each in benchmarks:
                make(node, work, each.folder)
        else:
            say(f"{node.name}: using driver and probes built here for {built.driver.release}")
            prebuilt.send(node, built, work)
        if host_state.read_saved(node) is None:
            host_state.save(node, host_state.read(node))
        devices = driver_exchange.unload(node)
        try:
            if built is None:
                make(node.root, work, "kernel", "install")
                make(node.root, work, "ebpf", "install")
                for each in benchmarks:
                    make(node.root, work, each.folder, "install")
            else:
                prebuilt.install(node, built, work)
        finally:
            driver_exchange.load(node, devices)


def _buildable(node: Node, say: Say) -> list[OwnBenchmark]:
    """Return which of our benchmarks can be built on the host; plans may do without them."""
    buildable = []
    for each in OWN_BENCHMARKS:
        if node.run(["env", SBIN, "sh", "-c", each.condition], check=False).returncode == 0:
            buildable.append(each)
        else:
            say(
                f"{node.name}: no {each.needs}, so {each.name} is not built; "
                f"to run it: apt-get install {each.package}, then prepare the host again"
            )
    return buildable
