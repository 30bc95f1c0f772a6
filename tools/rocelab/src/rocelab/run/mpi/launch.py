# SPDX-License-Identifier: GPL-2.0-or-later
"""Start mpirun on the first node and its daemons on the others, without a key between nodes.

Open MPI asks a program, usually ssh, to start its daemon on another node. Here that program
prints the command, and rocelab, which can log in to every node, starts the daemon there: no node
can log in to another, and nothing stays behind. The daemons then meet on the control network.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath
from types import MappingProxyType

from rocelab.bench.mpi import recipe
from rocelab.bench.mpi.suite import MpiJob, Suite
from rocelab.bench.plan import MpiPlan
from rocelab.errors import CellError, TestbedError
from rocelab.node import Completed, Node, Process
from rocelab.node.endpoint import machine_of, machines

_ASKS = "rocelab-agent: "
_ASKS_WITHIN = 60
_ENDS_WITHIN = 30
_DAEMONS = {"prted", "orted"}
_TIMED_OUT = 124

_AGENT = f"""#!/bin/sh
# in ssh's place: rocelab, which reads this, starts the daemon
echo "{_ASKS}$*" >&2
"""
# OSU's from 7.2 on has a folder more
_OSU = "/usr/local/libexec/osu-micro-benchmarks/mpi"
_PATH = ":".join((
    *("PATH=/usr/local/bin:$PATH", f"{_OSU}/pt2pt", f"{_OSU}/collective"),
    *(f"{_OSU}/pt2pt/standard", f"{_OSU}/collective/blocking", "/usr/local/libexec/npb"),
))  # fmt: skip
_FIND = f"""#!/bin/sh
# the first of these programs that a rank here would find
{_PATH}
for name; do command -v "$name" >/dev/null && echo "$name" && exit; done
exit 1
"""
# Ranks are in blocks: rank / (ranks per node) is the number of the node. They run in a folder of
# their own, as some suites read and write files of fixed names.
_RANK = f"""#!/bin/sh
per_node=$1 here=$2
shift 2
set -a
. "$here/node.$((OMPI_COMM_WORLD_RANK / per_node))"
{_PATH}
cd "$here" && exec "$@"
"""

Keep = Callable[[Completed], None]


@contextmanager
def prepared(
    nodes: Sequence[Node],
    settings: Sequence[Mapping[str, str]],
    own: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Files that ranks need, on every machine, in a folder that is gone afterwards: its name.

    `settings[i]` are those of the ranks of `nodes[i]`, `own` the files of the suite itself.
    """
    first = machine_of(nodes[0])
    # not in /run: it is root's, and on many hosts nothing there may be executed
    folder = first.run(("mktemp", "-d", "-t", "rocelab-mpi.XXXXXX")).stdout.strip()
    programs = {"agent": _AGENT, "rank": _RANK, "find": _FIND}
    files = {**own, **programs}
    files |= {f"node.{i}": recipe.as_file(each) for i, each in enumerate(settings)}
    try:
        for machine in machines(nodes):
            machine.run(("mkdir", "-p", "-m", "0700", folder))
            for name, text in files.items():
                machine.run(("tee", f"{folder}/{name}"), stdin=text)
            machine.run(("chmod", "0700", *(f"{folder}/{name}" for name in programs)))
        yield folder
    finally:
        for machine in machines(nodes):
            machine.run(("rm", "-rf", folder), check=False)


def find(suite: Suite, job: MpiJob, nodes: Sequence[Node], folder: str) -> str:
    """What the suite's program is called on these nodes. Raises CellError where it is not there."""
    names = suite.programs(job)
    found = {
        machine.name: machine.run((f"{folder}/find", *names), check=False).stdout.strip()
        for machine in machines(nodes)
    }
    without = [name for name, program in found.items() if program not in names]
    if without:
        raise CellError(
            f"{suite.source.title}: no {' or '.join(names)} on {' and '.join(without)}",
            cause="the suite is not installed there, or not where ranks look for it",
            action=f"{suite.source.get} docs/howto/mpi.md says where ranks look.",
        )
    if len(set(found.values())) > 1:
        raise CellError(
            f"{suite.source.title}: the nodes have different programs, {sorted(found.values())}",
            action="Install the same version on each node.",
        )
    return next(iter(found.values()))


def run(
    program: Sequence[str],
    mpi: MpiPlan,
    nodes: Sequence[Node],
    folder: str,
    *,
    control: str | None,
    timeout: int,
    keep: Keep = lambda _: None,
) -> Completed:
    """Run `program` as the ranks of an MPI job, and return mpirun when it has ended.

    `keep` is given it before it is judged. Raises CellError when it fails or takes longer than
    `timeout` seconds, TestbedError when a node does not answer.
    """
    hosts = machines(nodes)
    names = tuple(host.name for host in hosts)
    settings = recipe.for_job(mpi, control if len(hosts) > 1 else None, f"{folder}/agent")
    command = (
        *("env", *(f"{name}={value}" for name, value in settings.items())),
        *("timeout", "--kill-after=5", str(timeout)),
        *recipe.mpirun(mpi, names),
        *(("--leave-session-attached",) if len(hosts) > 1 else ()),
        *(f"{folder}/rank", str(mpi.ranks_per_node), folder, *program),
    )
    with ExitStack() as stack:
        process = stack.enter_context(_running(hosts[0], command))
        if len(hosts) > 1:
            _start_daemons(process, hosts[1:], stack)
        try:
            done = process.wait(timeout=timeout + 60)
        except TestbedError as error:
            raise CellError(f"mpirun: {error.what}", cause=error.cause) from error
    keep(done)
    if done.returncode:
        _failed(done, timeout)
    return done


def _start_daemons(process: Process, others: Sequence[Node], stack: ExitStack) -> None:
    for other in others:
        try:
            line = process.wait_for_line(f"{_ASKS}{other.name} ", timeout=_ASKS_WITHIN)
        except TestbedError as error:
            raise CellError(
                f"mpirun asked for no daemon on {other.name}",
                cause=error.cause,
                action="Try it by hand: docs/howto/mpi.md.",
            ) from error
        stack.enter_context(_running(other, daemon(line)))


def daemon(line: str) -> tuple[str, ...]:
    """The daemon's command out of what the agent printed. Raises CellError.

    It comes as shell text that sets variables first, `… ; export … ; /usr/bin/prted …`: only the
    last command is taken, as words, and only if it is Open MPI's daemon.
    """
    try:
        lexer = shlex.shlex(line.partition(_ASKS)[2], posix=True, punctuation_chars=";")
        lexer.whitespace_split = True
        words = list(lexer)[1:]
    except ValueError as error:
        raise CellError(f"mpirun's command for its daemon cannot be read: {line!a:.120}") from error
    while ";" in words:
        words = words[words.index(";") + 1 :]
    if not words or PurePosixPath(words[0]).name not in _DAEMONS:
        raise CellError(f"mpirun wants something else than its daemon: {line!a:.120}")
    return tuple(words)


@contextmanager
def _running(node: Node, argv: Sequence[str]) -> Iterator[Process]:
    process = node.start(argv)
    try:
        yield process
    finally:
        process.kill()


def _failed(done: Completed, timeout: int) -> None:
    what = f"exited with {done.returncode}"
    if done.returncode == _TIMED_OUT:
        what = f"did not end within {timeout} s"
    lines = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if line.strip(" -") and _ASKS not in line
    ]
    raise CellError(
        f"mpirun {what}",
        cause="\n".join(lines[-12:])[-1500:],
        action="`rocelab doctor --mpi` says which setting to change.",
    )
