# SPDX-License-Identifier: GPL-2.0-or-later
"""Start mpirun on the first node and its daemons on the others; nodes need no keys for each other.

Open MPI runs a launch agent, usually ssh, to start its daemon on another node. Our agent only
prints the command. rocelab, which can log in to every node, reads it and starts the daemon there.
So no node can log in to another, and nothing is left on them. The daemons connect over the
control network.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NoReturn

from rocelab.errors import CellError, StallError, TestbedError
from rocelab.plans.benchmarks.mpi import recipe
from rocelab.plans.benchmarks.mpi.suite import MpiJob, Suite
from rocelab.plans.plan import MpiPlan
from rocelab.testbed.control_network import ControlEnd
from rocelab.testbed.lease import end_marked
from rocelab.testbed.node import Completed, Node, Process
from rocelab.testbed.node.endpoint import machine_of, machines
from rocelab.testbed.node.parallel import at_once

_AGENT_MARK = "rocelab-agent: "
_DAEMONS = {"prted", "orted"}
_TIMED_OUT = 124

_RANK_MARK = "rocelab-rank: started"
_IF_INCLUDE = {"oob_tcp_if_include", "prte_if_include"}
# the port in `…;tcp://192.0.2.1,198.51.100.1:46255:24` (Open MPI 5) or without `:24` (Open MPI 4)
_URI_PORT = re.compile(r"tcp6?://(?:\[[^\]]*\]|[^:;\"\s]*):(\d{1,5})\b")

_AGENT = f"""#!/bin/sh
# stands in for ssh: rocelab reads this line and starts the daemon
echo "{_AGENT_MARK}$*" >&2
"""
# OSU 7.2 and later install into subfolders: standard, blocking
_OSU = "/usr/local/libexec/osu-micro-benchmarks/mpi"
_PATH = ":".join((
    *("PATH=$PATH:/usr/local/bin", f"{_OSU}/pt2pt", f"{_OSU}/collective"),
    *(f"{_OSU}/pt2pt/standard", f"{_OSU}/collective/blocking", "/usr/local/libexec/npb"),
))  # fmt: skip
_FIND = f"""#!/bin/sh
# print the first of these programs that a rank would find on this machine
{_PATH}
for name; do command -v "$name" >/dev/null && echo "$name" && exit; done
exit 1
"""
# Ranks are numbered in blocks: rank / (ranks per node) is the index of the node. They run in the
# job's folder, because some suites read and write files with fixed names.
_RANK = f"""#!/bin/sh
per_node=$1 here=$2
shift 2
set -a
# a job step has no number from mpirun
rank=${{OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}}
. "$here/node.$((rank / per_node))"
{_PATH}
[ "$rank" != 0 ] || echo "{_RANK_MARK}" >&2
cd "$here" && exec ${{ROCELAB_CPUS:+taskset --cpu-list "$ROCELAB_CPUS"}} "$@"
"""

# getopt's, in the C locale
_UNKNOWN_OPTION = re.compile(r"(?:invalid|unrecognized) option")

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- in it, a folder of ours
# The folder, the one in memory, and then the name and the text of each file. A folder that exists
# is ours (nodes may share a file system) or an attacker's.
_FILL = """
folder=$1
make() {
	mkdir -m 0700 "$1" 2>/dev/null || { [ ! -L "$1" ] && [ -d "$1" ] && [ -O "$1" ]; } && return
	echo "$1 cannot be made, or is somebody else's" >&2
	exit 1
}
mkdir -p "${folder%/*}" || exit
make "$folder"
make "$2"
shift 2
cd "$folder" || exit
programs=
while [ "$#" -gt 0 ]; do
	printf %s "$2" >"$1" || exit
	case "$2" in '#!'*) programs="$programs $1" ;; esac
	shift 2
done
# names of ours, without blanks
chmod 0700 $programs
"""

Keep = Callable[[Completed], None]
Starter = tuple[Node, tuple[str, ...]]
"""Where to run which command line, before that of a rank, to start all ranks without mpirun."""


@contextmanager
def prepare(
    nodes: Sequence[Node],
    settings: Sequence[Mapping[str, str]],
    suite_files: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Put the files that ranks need into a temporary folder on every machine; yield its path.

    `settings[i]` are the settings of the ranks on `nodes[i]`.
    """
    first = machine_of(nodes[0])
    # not in /run: only root can write there, and many hosts mount it noexec
    folder = first.run(("mktemp", "-d", "-t", "rocelab-mpi.XXXXXX")).stdout.strip()
    files = {**suite_files, "agent": _AGENT, "rank": _RANK, "find": _FIND}
    files |= {f"node.{i}": recipe.as_file(each) for i, each in enumerate(settings)}
    pairs = [word for name, text in files.items() for word in (name, text)]

    def fill(machine: Node) -> None:
        machine.run(("sh", "-c", _FILL, "sh", folder, memory(folder), *pairs))

    try:
        at_once(fill, machines(nodes))
        yield folder
    except BaseException:
        # the ranks of a killed mpirun send until they notice, into the next cell, too
        end = ("sh", "-c", f"{end_marked()}end_marked '^TMPDIR={folder}$'")
        at_once(lambda machine: machine.run(end, check=False), machines(nodes))
        raise
    finally:
        gone = ("rm", "-rf", folder, memory(folder))
        at_once(lambda machine: machine.run(gone, check=False), machines(nodes))


def memory(folder: str) -> str:
    """Return the folder in shared memory that belongs to a job's."""
    return f"{_SHARED_MEMORY}/{PurePosixPath(folder).name}"


def _temporary(folder: str) -> dict[str, str]:
    """Return settings that keep the files of Open MPI and UCX in our folders.

    So they go with these, also where a rank or mpirun is killed. Open MPI's shmem/posix is left
    out because it always tries out /dev/shm/open_mpi.0000.
    """
    names = ("OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory")
    places = dict.fromkeys((*names, "UCX_POSIX_DIR"), memory(folder))
    return {"TMPDIR": folder, "OMPI_MCA_shmem": "mmap", **places}


def find(suite: Suite, job: MpiJob, nodes: Sequence[Node], folder: str) -> str:
    """Return the name of the suite's program on these nodes. Raises CellError if one lacks it."""
    names = suite.programs(job)
    hosts = machines(nodes)
    look = (f"{folder}/find", *names)
    answers = at_once(lambda host: host.run(look, check=False).stdout.strip(), hosts)
    programs = dict(zip((host.name for host in hosts), answers, strict=True))
    lacking = [name for name, program in programs.items() if program not in names]
    if lacking:
        raise CellError(
            f"{suite.source.title}: no {' or '.join(names)} on {' and '.join(lacking)}",
            cause="the suite is not installed there, or not in the search path of the ranks",
            action=f"{suite.source.get} docs/howto/mpi.md lists the search path.",
        )
    if len(set(programs.values())) > 1:
        raise CellError(
            f"{suite.source.title}: the nodes have different programs, {sorted(programs.values())}",
            cause="a different version is installed on each",
            action="Install the same version on each node.",
        )
    return next(iter(programs.values()))


def run(
    program: Sequence[str],
    mpi: MpiPlan,
    nodes: Sequence[Node],
    folder: str,
    *,
    control: Sequence[ControlEnd] | None,
    timeout: int,
    launch_seconds: int,
    keep: Keep = lambda _: None,
    starter: Starter | None = None,
) -> Completed:
    """Run `program` as the ranks of an MPI job and return the completed mpirun.

    `control[i]` is where the daemon of `nodes[i]` talks. With a `starter` there is neither mpirun
    nor a daemon. `keep` gets mpirun's output first, even if
    it failed. Raises CellError when no rank starts within `launch_seconds`, or when mpirun fails or
    takes longer than `timeout` seconds, TestbedError when a node does not answer.
    """
    hosts = machines(nodes)
    names = tuple(host.name for host in hosts)
    _check_host_names(hosts)
    ends = tuple(control or ())[: len(hosts)] if len(hosts) > 1 else ()
    settings = job_settings(mpi, f"{folder}/agent", ends)
    launcher = (
        *recipe.mpirun(mpi, names),
        *(("--leave-session-attached",) if len(hosts) > 1 else ()),
    )
    where, launcher = starter or (hosts[0], launcher)
    temporary = _temporary(folder)
    command = (
        *("env", *(f"{name}={value}" for name, value in (temporary | settings).items())),
        *("timeout", "--kill-after=5", str(timeout)),
        *launcher,
        *(f"{folder}/rank", str(mpi.ranks_per_node), folder, *program),
    )
    with ExitStack() as stack:
        process = stack.enter_context(_running(where, command))
        if ends:
            before = ("env", *(f"{name}={value}" for name, value in temporary.items()))
            _start_daemons(process, hosts, ends, before, launch_seconds, stack)
        elif starter:
            _wait_for_a_rank(process, launcher, launch_seconds)
        try:
            done = process.wait(timeout=timeout + 60)
        except TestbedError as error:
            raise CellError(f"{launcher[0]}: {error.what}", cause=error.cause) from error
    keep(done)
    if done.returncode:
        _raise_failed(launcher[0], done, timeout)
    return done


def job_settings(mpi: MpiPlan, agent: str, control: Sequence[ControlEnd] | None) -> dict[str, str]:
    """Return the settings of mpirun, whose daemons talk at the ends `control`."""
    if not control:
        return recipe.for_job(mpi, agent, control=None)
    first = control[0]
    return recipe.for_job(mpi, agent, control=first.netdev, ipv6=":" in first.address)


def _check_host_names(hosts: Sequence[Node]) -> None:
    """Open MPI takes hosts whose names are equal up to the first dot for one machine, and hangs."""
    owners: dict[str, Node] = {}
    names = at_once(lambda host: host.run(("uname", "-n")).stdout.strip(), hosts)
    for host, name in zip(hosts, names, strict=True):
        other = owners.setdefault(name.partition(".")[0], host)
        if other is not host:
            raise CellError(
                f"{other.name} and {host.name} have the same host name, {name!a:.64}",
                cause="Open MPI takes hosts for one machine if their names are equal up to the "
                "first dot",
                action=f"On {host.name}: `hostnamectl set-hostname` with another name.",
            )


def _start_daemons(
    process: Process,
    hosts: Sequence[Node],
    ends: Sequence[ControlEnd],
    before: tuple[str, ...],
    launch_seconds: int,
    stack: ExitStack,
) -> None:
    deadline = time.monotonic() + launch_seconds
    names = recipe.host_names(tuple(host.name for host in hosts))
    for host, end, name in zip(hosts[1:], ends[1:], names[1:], strict=True):
        try:
            line = process.wait_for_line(f"{_AGENT_MARK}{name} ", timeout=_seconds_left(deadline))
        except TestbedError as error:
            raise CellError(
                f"mpirun did not start a daemon on {host.name}",
                cause=error.cause,
                action="Start mpirun by hand: docs/howto/mpi.md shows how.",
            ) from error
        stack.enter_context(_running(host, (*before, *daemon(line, end.netdev))))
    try:
        process.wait_for_line(_RANK_MARK, timeout=_seconds_left(deadline))
    except TestbedError as error:
        if time.monotonic() < deadline:
            return  # mpirun ended early: its own output says why
        first, others = hosts[0], " and ".join(host.name for host in hosts[1:])
        raise CellError(
            f"no MPI rank started within {launch_seconds} s: a daemon on {others} does not reach "
            f"mpirun on {first.name} at {ends[0].address} ({ends[0].netdev})",
            cause=f"a firewall or a missing route; {error.cause}",
            action=f"On {others}, try `ping {ends[0].address}`; allow TCP from there to any port, "
            "or name another network with `control` in the inventory.",
        ) from error


def _wait_for_a_rank(process: Process, launcher: Sequence[str], seconds: int) -> None:
    deadline = time.monotonic() + seconds
    try:
        process.wait_for_line(_RANK_MARK, timeout=seconds)
    except TestbedError as error:
        if time.monotonic() < deadline:
            return  # it ended early: its own output says why
        raise CellError(
            f"no MPI rank started within {seconds} s: {launcher[0]} waits",
            cause=error.cause,
            action="Try `srun --overlap --mpi=pmix hostname` in the allocation; "
            "SLURM_MPI_TYPE=none has mpirun start the ranks.",
        ) from error


def _seconds_left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def control_ports(done: Completed) -> frozenset[int]:
    """Return the TCP ports on which mpirun listened for its daemons, from the agent's lines."""
    asked = (line for line in done.stderr.splitlines() if _AGENT_MARK in line)
    return frozenset(int(port) for line in asked for port in _URI_PORT.findall(line))


def daemon(line: str, netdev: str) -> tuple[str, ...]:
    """Parse the daemon's command from the line that the agent printed. Raises CellError.

    `netdev` takes the place of the first node's control interface, whose name may differ.

    The line is shell text that first sets variables, `… ; export … ; /usr/bin/prted …`. We take
    only the last command, split into words, and only if it is Open MPI's daemon: by its name, as
    each host may have it in another folder.
    """
    try:
        lexer = shlex.shlex(line.partition(_AGENT_MARK)[2], posix=True, punctuation_chars=";")
        lexer.whitespace_split = True
        words = list(lexer)[1:]
    except ValueError as error:
        raise CellError(
            f"cannot parse mpirun's command for its daemon: {line!a:.120}",
            cause=f"{error}",
            action="Run `mpirun --version` on the first node: it must be Open MPI.",
        ) from error
    while ";" in words:
        words = words[words.index(";") + 1 :]
    if not words or PurePosixPath(words[0]).name not in _DAEMONS:
        raise CellError(
            f"mpirun asked for a command that is not its daemon: {line!a:.120}",
            cause="this Open MPI names its daemon differently, or the output is not mpirun's",
            action="Run `mpirun --version` on the first node: it must be Open MPI.",
        )
    words[0] = PurePosixPath(words[0]).name
    for index, word in enumerate(words[:-1]):
        if word in _IF_INCLUDE:
            words[index + 1] = netdev
    return tuple(words)


@contextmanager
def _running(node: Node, argv: Sequence[str]) -> Iterator[Process]:
    process = node.start(argv)
    try:
        yield process
    finally:
        process.kill()


def _raise_failed(launcher: str, done: Completed, timeout: int) -> NoReturn:
    stalled = done.returncode == _TIMED_OUT
    problem = f"did not end within {timeout} s" if stalled else f"exited with {done.returncode}"
    lines = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if line.strip(" -") and _AGENT_MARK not in line and line != _RANK_MARK
    ]
    raise (StallError if stalled else CellError)(
        f"{launcher} {problem}",
        cause="\n".join(lines[-12:])[-1500:],
        action="Use a version that docs/howto/mpi.md names."
        if _UNKNOWN_OPTION.search(done.stderr)
        else "Run `rocelab doctor --mpi`: it says which setting to change.",
    )
