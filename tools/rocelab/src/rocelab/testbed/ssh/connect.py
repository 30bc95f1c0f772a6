# SPDX-License-Identifier: GPL-2.0-or-later
"""Log in to the hosts of an inventory: one connection each, checked before use."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rocelab.conditions import check_socket
from rocelab.directory import temporary_folder, temporary_place
from rocelab.errors import MissingError, TestbedError
from rocelab.testbed.node import DataLink, awake
from rocelab.testbed.node.outputs import outputs
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.ssh_node import SshNode, SshTarget, option_value
from rocelab.testbed.node.user_connection import UserNode, UserRights
from rocelab.testbed.ssh import data_interface, site_environment
from rocelab.testbed.ssh.inventory import Host

DRIVER_AND_PROBES = "the driver and the probes"
"""What needs root on a host, unless the caller knows better."""
_LOGIN_TIMEOUT = 30
_DISCONNECT = """
while read -r _; do :; done
folder=$1
shift
for path; do timeout 20 ssh -F none -o "ControlPath=$path" -O exit -- host; done
rm -rf -- "$folder"
"""
_SSHS_ENDING = ".0123456789abcdef"
"""ssh(1) gives its socket such a name first."""
_UNKNOWN_LINK = DataLink("", "", "", 0)
_N = TypeVar("_N", bound=UserNode)
_R = TypeVar("_R", bound=UserRights)


def target_of(host: Host, control_path: Path) -> SshTarget:
    """Return how to log in to a host; commands share the connection at `control_path`.

    The path `none` stands for no shared connection.
    """
    return SshTarget(
        host.host,
        control_path,
        port=host.port,
        user=host.user,
        identity=host.identity,
        known_hosts=host.known_hosts,
    )


@contextmanager
def connect(hosts: Sequence[Host], *, root_for: str = DRIVER_AND_PROBES) -> Iterator[list[SshNode]]:
    """Connect to the hosts and yield them as nodes; disconnect on exit.

    `root_for` says what needs root; if it is empty, a host may refuse it. Raises MissingError if
    ssh(1) is not installed, TestbedError when a host refuses the login, does not let us become
    root, or lacks the data interface; UsageError when TMPDIR has too long a path.
    """
    if not shutil.which("ssh"):
        raise MissingError(
            "ssh is not installed",
            cause="rocelab reaches the hosts of an inventory with ssh(1)",
            action="Run `apt-get install openssh-client`.",
        )
    for host in hosts:
        longest = f"rocelab-01234567/{host.name}{_SSHS_ENDING}"
        check_socket(Path(temporary_place(), longest), "TMPDIR")

    def one(host: Host) -> SshNode:
        target = targets[host.name]
        _open(host, target)
        shells = target.waiting_shells()
        closing.callback(shells.close)
        return check_host(
            host,
            replace(target, shells=shells),
            lambda link, target: SshNode(host.name, link, target),
            root_for,
        )

    with temporary_folder() as folder:
        sockets = Path(folder)
        targets = {host.name: target_of(host, sockets / host.name) for host in hosts}
        with _disconnecting(sockets, targets.values()), ExitStack() as closing:
            yield at_once(one, hosts)


@contextmanager
def _disconnecting(sockets: Path, targets: Iterable[SshTarget]) -> Iterator[None]:
    """Close all connections and remove their folder on exit, or when this process is killed.

    A shell does that as soon as its standard input closes, which happens in either case.
    """
    paths = [option_value(target.control_path) for target in targets]
    with subprocess.Popen(
        ["sh", "-c", _DISCONNECT, "sh", str(sockets), *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ):
        yield


def _open(host: Host, target: SshTarget) -> None:
    """Open the shared connection; report ssh's own message when that fails."""
    argv = ["ssh", "-M", "-N", "-f", *target.options(), "--", target.host]
    with tempfile.TemporaryFile(dir=temporary_place()) as errors:
        with subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # not a pipe: ssh in the background would hold it open
            stderr=errors,
            start_new_session=True,
        ) as process:
            status: int | None = None
            try:
                status = awake.wait(process, _LOGIN_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
            except BaseException:
                process.kill()
                raise
        errors.seek(0)
        message = errors.read(4096).decode(errors="replace").strip()
    if status:
        raise TestbedError(
            f"{host.name} ({host.host}) refuses the SSH login",
            cause=message or f"ssh exited with {status}",
            action="Log in by hand once: ssh must know the host's key, and the host must accept "
            "yours without a password.",
        )
    if status is None:
        raise TestbedError(
            f"{host.name} ({host.host}) does not answer within {_LOGIN_TIMEOUT} s",
            cause=message or "it is down, or a firewall drops the connection",
            action="Try to log in by hand.",
        )


def check_host(host: Host, target: _R, node_at: Callable[[DataLink, _R], _N], root_for: str) -> _N:
    """Return the node with its data interface; look whether commands can run as root.

    `node_at` makes the node from its interface and the way to it. `root_for` says what needs root;
    if it is empty, the host may refuse it. Raises TestbedError.
    """
    bare = node_at(_UNKNOWN_LINK, target)
    user, listing = outputs(bare, (("id", "-u"), data_interface.command(host.netdev)))
    is_root = user.strip() == "0"
    target = replace(target, is_root=is_root)
    link = data_interface.parse(listing, host.netdev, host=host.name)
    target = replace(target, environment=site_environment.of(bare, host))
    node = node_at(link, target)
    refused = "" if is_root else _refusal(node, host)
    if refused and root_for:
        raise TestbedError(
            f"cannot become root on {host.name}, as needed for {root_for}",
            cause=refused,
            action='Let this user run sudo without a password, or set user = "root" in the '
            "inventory. Plans of tcp, hw-*, ib and ipoib with probes = [] need no root.",
        )
    return node_at(link, replace(target, no_root=refused)) if refused else node


def _refusal(node: UserNode, host: Host) -> str:
    """Say why a user who is not root cannot become root; empty if they can."""
    if not host.root:
        return "the inventory says root = false"
    done = node.root.run(["true"], check=False)
    return (done.stderr.strip()[-200:] or "sudo refuses") if done.returncode else ""
