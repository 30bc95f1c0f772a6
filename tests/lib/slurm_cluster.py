# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm cluster on this machine: a real slurmctld, and two slurmd in separate namespaces.

login ─ br0 ┬ ctl0 s1 data0 ┐
            └ ctl0 s2 data0 ┘ the data link

Each node has its own network, host name, processes, /run and /tmp. All ends with the first process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from requirements import missing, need_program

_USER, _USER_GROUP = "nobody", "nogroup"
REPOSITORY = Path(__file__).parents[2]
_CONFIG = """
ClusterName=lab
SlurmctldHost=login(10.77.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={here}/munge.sock
CredType=cred/munge
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool/%n
SlurmctldPidFile={here}/ctld.pid
SlurmdPidFile={here}/slurmd.%n.pid
SlurmctldLogFile={here}/log/ctld
SlurmdLogFile={here}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=5
AccountingStorageType=accounting_storage/none
PartitionName=lab Nodes=ALL Default=YES State=UP
"""
# without these, slurmd wants a mounted hierarchy
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
_NODE = """
hostname "$1"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/keep
mount --bind "$2" /run/keep
mount -t tmpfs tmpfs /tmp
mkdir -p "$2"
mount --bind /run/keep "$2"
ip link set lo up
touch "$2/$1.ready"
while [ ! -e "$2/linked" ]; do sleep 0.1; done
exec slurmd -D -N "$1" -f "$2/slurm.conf"
"""
_LOGIN = """
set -eu
here=$1 node=$2
hostname login
if [ "$3" ]; then
	# users without root may run a Python that is in root's home
	mkdir "$here/python"
	mount --bind "$3" "$here/python"
	mount -t tmpfs -o mode=0755 tmpfs /root
	mkdir -p "$3"
	mount --bind "$here/python" "$3"
fi
ip link set lo up
ip link add br0 type bridge
ip addr add 10.77.0.254/24 dev br0
ip link set br0 up
munged --force --socket="$here/munge.sock" --key-file="$here/munge.key" \\
	--pid-file="$here/munge.pid" --log-file="$here/log/munge" --seed-file="$here/munge.seed"
for i in 1 2; do
	unshare --net --uts --mount --pid --fork sh -eu -c "$node" sh "s$i" "$here" \\
		>"$here/log/s$i.out" 2>&1 &
	parent=$!
	while [ ! -e "$here/s$i.ready" ]; do sleep 0.1; done
	pgrep -P "$parent" >"$here/s$i.pid"
done
for i in 1 2; do
	pid=$(cat "$here/s$i.pid")
	ip link add "c$i" type veth peer name ctl0 netns "$pid"
	ip link set "c$i" master br0 up
	nsenter -t "$pid" -n ip addr add "10.77.0.$i/24" dev ctl0
	nsenter -t "$pid" -n ip link set ctl0 up
done
ip link add data0 netns "$(cat "$here/s1.pid")" type veth peer name data0 netns \\
	"$(cat "$here/s2.pid")"
for i in 1 2; do
	pid=$(cat "$here/s$i.pid")
	nsenter -t "$pid" -n ip addr add "10.78.0.$i/24" dev data0
	nsenter -t "$pid" -n ip link set data0 up
done
touch "$here/linked"
exec slurmctld -D -f "$here/slurm.conf"
"""


@dataclass
class Cluster:
    """A cluster that is up. `here` is its folder, `bin` is first in its users' PATH."""

    here: Path
    process: subprocess.Popen[bytes]
    """Without it, none of its processes lives."""
    first: int
    """PID of its first process."""

    @property
    def bin(self) -> Path:
        """The folder of programs that every node has."""
        return self.here / "bin"

    def command(self, *words: str, **environment: str) -> list[str]:
        """Return the command line that runs a command on the login machine."""
        variables = {
            "SLURM_CONF": f"{self.here}/slurm.conf",
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            **environment,
        }
        return [
            *("nsenter", "-t", str(self.first), "-n", "-u", "-m", "-p"),
            *("env", *(f"{name}={value}" for name, value in variables.items()), *words),
        ]

    def run(
        self, *words: str, timeout: float = 240, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login machine to its end."""
        return subprocess.run(
            self.command(*words, **environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def as_user(self, *words: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        """Run a command on the login machine as a user who is not root, whose home is `home`."""
        ids = (f"--reuid={_USER}", f"--regid={_USER_GROUP}", "--clear-groups")
        return self.run(
            *("env", "-C", str(self.home), f"HOME={self.home}", "setpriv", *ids, "--", *words),
            timeout=timeout,
        )

    @property
    def home(self) -> Path:
        """The home of the user who is not root, the same on each machine."""
        return self.here / "home"

    def wait_until(self, true: Callable[[], bool], seconds: float = 300) -> None:
        """Wait for something, and say with the logs if it does not come."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            if true():
                return
            time.sleep(0.2)
        logs = "\n".join(path.read_text() for path in sorted((self.here / "log").glob("*")))
        raise AssertionError(f"the cluster did not come up:\n{logs[-4000:]}")

    def wait_for_idle(self, nodes: int, seconds: float = 300) -> None:
        """Wait until Slurm could give all of that many nodes to a job."""
        listing = ("sinfo", "--noheader", "--states=idle", "--format=%D")
        self.wait_until(lambda: self.run(*listing).stdout.split() == [str(nodes)], seconds)

    def kill_node(self, name: str) -> None:
        """Let a node vanish, as if its power had failed: nothing answers there any more."""
        pid = (self.here / f"{name}.pid").read_text().strip()
        self.run("ip", "link", "set", f"c{name[1:]}", "down")
        self.run("kill", "-KILL", pid)


@contextmanager
def running() -> Iterator[Cluster]:
    """Run a cluster for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="slurm-lab-") as folder:
        # pytest's own folders are closed to the user who is not root
        Path(folder).chmod(0o755)
        with _in(Path(folder)) as cluster:
            yield cluster


@contextmanager
def _in(here: Path) -> Iterator[Cluster]:
    for program in ("slurmctld", "slurmd", "srun", "munged", "qperf", "mpicc"):
        need_program(program)
    if os.geteuid():
        missing("slurmd and its network namespaces need root")
    processors = len(os.sched_getaffinity(0))
    nodes = [f"NodeName=s{i} NodeAddr=10.77.0.{i} CPUs={processors}" for i in (1, 2)]
    configure(here, nodes)
    _build(here / "bin")
    (here / "home").mkdir()
    shutil.chown(here / "home", _USER, _USER_GROUP)
    base = Path(sys.base_prefix)
    python = str(base) if base.is_relative_to("/root") else ""
    with login(here, _LOGIN, _NODE, python) as cluster:
        cluster.wait_for_idle(2)
        yield cluster


def configure(here: Path, nodes: Sequence[str]) -> None:
    """Write what slurmctld, slurmd and munged read; `nodes`: a line of slurm.conf(5) for each."""
    for folder in ("log", "state", "spool/s1", "spool/s2", "bin"):
        (here / folder).mkdir(parents=True)
    (here / "munge.key").write_bytes(os.urandom(128))
    (here / "munge.key").chmod(0o400)
    (here / "slurm.conf").write_text(_CONFIG.format(here=here) + "\n".join([*nodes, ""]))
    (here / "cgroup.conf").write_text(_CGROUP)


@contextmanager
def login(here: Path, script: str, *words: str) -> Iterator[Cluster]:
    """Run `script`, with `here` and `words`, as the login machine, which has namespaces."""
    with (here / "log/login.out").open("w") as log:
        process = subprocess.Popen(
            [
                *("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc"),
                *("--kill-child", "sh", "-c", script, "sh", str(here), *words),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        cluster = Cluster(here, process, 0)
        cluster.wait_until(lambda: bool(children.read_text()))
        cluster.first = int(children.read_text())
        yield cluster
    finally:
        process.kill()
        process.wait()


def _build(into: Path) -> None:
    """Build what the nodes need for this machine's libc: mpibench and linktap."""
    made = into.parent
    for program, folder in (("mpibench", "tools/mpibench"), ("linktap", "ebpf/linktap")):
        quiet = ("make", "-s", "-C", str(REPOSITORY / folder), f"O={made / program}")
        subprocess.run(quiet, check=True, timeout=200)
        shutil.copy(made / program / program, into)
