# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm cluster whose nodes are virtual machines: slurmctld here, slurmd and munge on each.

login tun1 ─ ssh -w ─ tun0 alpha (n1) data0 ┐
      tun2 ─ ssh -w ─ tun0 beta  (n2) data0 ┘ the data link

The machines get this machine's own Slurm, so they must run the same Debian. Slurm's traffic goes
through their SSH connections: nothing else leads to them from here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import slurm_cluster
from requirements import missing, need_program
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.node.ssh_node import SshNode
from slurm_cluster import Cluster

NAMES = ("alpha", "beta", "gamma", "delta")
_LINES = {"bookworm": "6.1", "trixie": "6.12"}
_PACKAGES = ("slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2")
_PROGRAMS = ("slurmd", "slurmstepd", "srun", "munged")
_SOFTWARE = "/tmp/slurm.tar"
_LOGIN = """
set -eu
here=$1
hostname login
ip link set lo up
ip addr add 10.77.0.254/32 dev lo
echo 1 >/proc/sys/net/ipv4/ip_forward
munged --force --socket="$here/munge.sock" --key-file="$here/munge.key" \\
	--pid-file="$here/munge.pid" --log-file="$here/log/munge" --seed-file="$here/munge.seed"
exec slurmctld -D -f "$here/slurm.conf"
"""
_ALLOW_TUNNELS = """
set -eu
modprobe tun
echo 'PermitTunnel yes' >/etc/ssh/sshd_config.d/tunnel.conf
pkill -HUP -o -x sshd
"""
_LOGIN_END = """
ip addr add 10.77.0.254/32 peer "10.77.0.$1/32" dev "tun$1" && ip link set "tun$1" mtu 1400 up
"""
_NODE = """
set -eu
name=$1 address=$2 here=$3
ip addr add "$address/32" dev tun0
ip link set tun0 mtu 1400 up
ip route add 10.77.0.0/24 dev tun0
tar -x --skip-old-files -C / -f "$4"
rm "$4"
ldconfig
mkdir -p "$here/spool/$name"
# munged wants nobody else to write in its folders
chown -R root "$here"
munged --force --socket="$here/munge.sock" --key-file="$here/munge.key" \\
	--pid-file="$here/munge.pid" --log-file="$here/log/munge" --seed-file="$here/munge.seed"
slurmd -N "$name" -f "$here/slurm.conf"
"""
_END_NODE = """
for file in "$1"/slurmd.*.pid "$1/munge.pid"; do
	[ ! -e "$file" ] || kill "$(cat "$file")"
done
rm -rf "$1"
"""


def line() -> str:
    """The kernel line whose image has the same Debian as this machine, and so its Slurm."""
    lines = Path("/etc/os-release").read_text().splitlines()
    debian = dict(each.partition("=")[::2] for each in lines).get("VERSION_CODENAME", "")
    if debian not in _LINES:
        missing("no node image has this machine's Debian, and so its Slurm")
    return _LINES[debian]


@contextmanager
def running(nodes: Sequence[SshNode]) -> Iterator[Cluster]:
    """Make a cluster of these machines, with NAMES, for as long as the context lasts."""
    for program in ("slurmctld", *_PROGRAMS):
        need_program(program)
    if os.geteuid():
        missing("slurmctld's network namespace and the tunnels need root")
    members = list(zip(range(1, 1 + len(nodes)), NAMES, nodes, strict=False))
    with ExitStack() as stack:
        here = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-vms-")))
        here.chmod(0o755)
        slurm_cluster.configure(
            here,
            [
                f"NodeName={name} NodeHostname={node.name} NodeAddr=10.77.0.{number} CPUs=1"
                for number, name, node in members
            ],
        )
        software = here / "software.tar"
        _archive(
            software, [here / name for name in ("slurm.conf", "cgroup.conf", "munge.key", "log")]
        )
        cluster = stack.enter_context(slurm_cluster.login(here, _LOGIN))

        def join(member: tuple[int, str, SshNode]) -> None:
            number, name, node = member
            node.run(["sh", "-c", _ALLOW_TUNNELS])
            node.put(software, _SOFTWARE)
            stack.enter_context(_tunnel(cluster, node, number))
            words = (name, f"10.77.0.{number}", str(here), _SOFTWARE)
            node.run(["sh", "-c", _NODE, "sh", *words], timeout=120)

        for _, _, node in members:
            stack.callback(node.run, ["sh", "-c", _END_NODE, "sh", str(here)], check=False)
        at_once(join, members)
        cluster.wait_for_idle(len(nodes), 180)
        yield cluster


def _archive(path: Path, more: Sequence[Path]) -> None:
    """Put this machine's Slurm and munge, with the libraries they need, into an archive of /."""
    listed = _words_of("dpkg", "-L", *_PACKAGES)
    paths = {word for word in listed if word.startswith(("/usr/bin/", "/usr/sbin/", "/usr/lib/"))}
    for program in _PROGRAMS:
        path_of_program = str(shutil.which(program))  # a link to /etc/alternatives
        paths |= {
            path_of_program,
            *(word for word in _words_of("ldd", path_of_program) if word[0] == "/"),
        }
    with tarfile.open(path, "w", dereference=True) as archive:
        for each in sorted(paths):
            if Path(each).is_file():
                archive.add(each)
        for own in more:
            archive.add(own, recursive=False)


def _words_of(*argv: str) -> list[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


@contextmanager
def _tunnel(cluster: Cluster, node: SshNode, number: int) -> Iterator[None]:
    """Lead from the login machine's tunN to the node's tun0, through the connection that is open.

    That is a socket in a folder, which the login machine's namespaces do not hide.
    """
    through = shlex.join(["ssh", *node.target.options(), "-W", "127.0.0.1:22", node.target.host])
    alone = replace(node.target, control_path=Path("none")).options()
    process = subprocess.Popen(
        [
            *("nsenter", "-t", str(cluster.first), "-n", "ssh", "-N", "-w", f"{number}:0"),
            *("-o", "Tunnel=point-to-point", "-o", "ClearAllForwardings=no"),
            *("-o", "ExitOnForwardFailure=yes"),
            *("-o", f"ProxyCommand={through.replace('%', '%%')}", *alone, node.target.host),
        ],
        stdin=subprocess.DEVNULL,
        stdout=(log := (cluster.here / f"log/tunnel{number}").open("w")),
        stderr=log,
        start_new_session=True,
    )
    try:
        there = ("sh", "-c", "ip link show tun0 2>/dev/null")
        cluster.wait_until(
            lambda: (
                cluster.run("ip", "link", "show", f"tun{number}").returncode == 0
                and node.run(there, check=False).returncode == 0
            )
        )
        done = cluster.run("sh", "-c", _LOGIN_END, "sh", str(number))
        assert done.returncode == 0, done.stderr
        yield
    finally:
        process.kill()
        process.wait()
        log.close()
