# SPDX-License-Identifier: GPL-2.0-or-later
"""Log in to hosts of an inventory: one connection each, checked before it is used."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from rocelab.errors import MissingError, TestbedError
from rocelab.node import DataLink
from rocelab.node.parallel import at_once
from rocelab.node.ssh import SshNode, SshTarget
from rocelab.provider.ssh import link
from rocelab.provider.ssh.inventory import Host

_ANSWERS_WITHIN = 30
_UNKNOWN_LINK = DataLink("", "", "", 0)


def target_of(host: Host, control_path: Path) -> SshTarget:
    """How to log in to a host of the inventory; `none` is no shared connection."""
    return SshTarget(
        host.host,
        control_path,
        port=host.port,
        user=host.user,
        identity=host.identity,
        known_hosts=host.known_hosts,
    )


@contextmanager
def connected(hosts: Sequence[Host]) -> Iterator[list[SshNode]]:
    """The hosts as nodes, for as long as the context lasts.

    Raises MissingError without an ssh(1), TestbedError when a host does not let us in, does not
    let us become root, or lacks the data interface.
    """
    if not shutil.which("ssh"):
        raise MissingError("ssh is not installed", action="apt-get install openssh-client")
    with ExitStack() as stack:
        # short: a socket's path has 108 bytes
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rocelab-")))

        def one(host: Host) -> SshNode:
            target = target_of(host, sockets / host.name)
            _open(host, target)
            stack.callback(SshNode(host.name, _UNKNOWN_LINK, target).close)
            return _checked(host, target)

        yield at_once(one, hosts)


def _open(host: Host, target: SshTarget) -> None:
    """Open the shared connection, and pass on ssh's own words when it will not."""
    argv = ["ssh", "-M", "-N", "-f", *target.options(), "--", target.host]
    with tempfile.TemporaryFile() as said:
        try:
            status = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # not a pipe: the connection in the background would hold it open
                stderr=said,
                timeout=_ANSWERS_WITHIN,
                check=False,
                start_new_session=True,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        said.seek(0)
        words = said.read(4096).decode(errors="replace").strip()
    if status:
        raise TestbedError(
            f"{host.name} ({host.host}) does not let us in",
            cause=words or f"ssh ended with {status}",
            action="log in by hand once: its host key must be known, and your key accepted "
            "without a password",
        )
    if status is None:
        raise TestbedError(
            f"{host.name} ({host.host}) does not answer within {_ANSWERS_WITHIN} s",
            cause=words or "it is down, or a firewall drops the connection",
            action="see whether you can log in by hand",
        )


def _checked(host: Host, target: SshTarget) -> SshNode:
    """The node, its data interface known, after it has shown that root is to be had."""
    bare = SshNode(host.name, _UNKNOWN_LINK, target)
    is_root = bare.run(["id", "-u"]).stdout.strip() == "0"
    target = replace(target, is_root=is_root)
    found = link.parse(
        bare.run(link.command(host.netdev), check=False).stdout, host.netdev, host=host.name
    )
    node = SshNode(host.name, found, target)
    asked = node.root.run(["true"], check=False)
    if asked.returncode:
        raise TestbedError(
            f"we cannot become root on {host.name}",
            cause=asked.stderr.strip()[-200:] or "sudo refuses",
            action="the driver and the probes need it: let this user sudo without a password, "
            "or name root in the inventory",
        )
    return node
