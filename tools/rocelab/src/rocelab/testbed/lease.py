# SPDX-License-Identifier: GPL-2.0-or-later
"""A lease on each machine of a run: it ends with the run, and takes what is left with it.

A small shell on the machine holds the lease until its standard input closes. That happens however
rocelab ends, even by SIGKILL. It then kills the commands that rocelab started there, carries out
what `at_end` noted, and removes queueing disciplines and temporary files. It does the same before
it holds the lease, for what an earlier run left whose lease was killed, too. A user who cannot
become root gets a separate lease, which waits for root's but not for those of other users.
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rocelab.errors import TestbedError
from rocelab.testbed.faults.traffic_control import SWEEP
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.endpoint import machines
from rocelab.testbed.node.interface import MARK
from rocelab.testbed.node.parallel import at_once
from rocelab.testbed.shaping import HANDLE

FOLDER = "/run/rocelab-lease"
"""On the machine; only root can write there. It exists while a run uses the machine."""
_SAYS = "rocelab-lease: "
_HELD, _BUSY = f"{_SAYS}held", f"{_SAYS}busy"
_WAIT_SECONDS = 20
"""Within which the lease of a run that was killed has cleaned up."""
_TIMEOUT = 120
_END_TIMEOUT = 60
# grep prints the processes whose environment has the mark; a zombie has no environment
_SCRIPT = f"""
home=$1 who=$2 by=$3
umask 077
user=$(id -u)
# whom sudo made root
[ "$by" != sudo ] || user=${{SUDO_UID:-$user}}
if [ ! "$home" ]; then
	# a plain user's: where nobody else can write
	home=/run/user/$user
	[ -d "$home" ] && [ -O "$home" ] || home=$HOME
	home=$home/.rocelab-lease-$(uname -n)
	tries=0
	while [ -d {FOLDER} ]; do
		if [ "$tries" -ge {10 * _WAIT_SECONDS} ]; then
			echo "{_BUSY} a run of root's"
			exit 3
		fi
		tries=$((tries + 1))
		sleep 0.1
	done
fi

sweep() {{
	tries=0
	while ours=$(grep -lsz '^{MARK}=' /proc/[0-9]*/environ | cut -d/ -f3) && [ "$ours" ]; do
		[ "$tries" -lt 50 ] || break
		kill -KILL $ours
		tries=$((tries + 1))
		sleep 0.1
	done
	if [ -s "$home/undo" ]; then
		tac "$home/undo" | while IFS= read -r line; do sh -c "$line" </dev/null; done
	fi
	rm -f "$home/undo"
	tc qdisc show | sed -n 's/^qdisc netem {HANDLE} dev \\([^ ]*\\) root .*/\\1/p' |
		while read -r netdev; do tc qdisc del dev "$netdev" root; done
	{SWEEP}
	find /tmp /run /dev/shm "${{TMPDIR:-/tmp}}" -maxdepth 1 \\( \\
		-user 0 -name 'rocelab-wire-??????.pcap' -o \\
		-user 0 -name 'rocelab-dump.*.pcapng' -o \\
		-user 0 -name 'rocelab-dump.*.folded' -o \\
		-user 0 -name 'rocelab-file.??????' -o \\
		-user "$user" -name 'rocelab-mpi.??????' \\) -exec rm -rf {{}} +
}}

# SIGTERM ends the lease; the connection's end must not stop what follows it
trap '' HUP INT PIPE
trap : TERM
until [ "$home/lock" -ef "/proc/$$/fd/9" ]; do
	mkdir -p "$home" && exec 9>>"$home/lock" || exit
	if ! flock -w {_WAIT_SECONDS} 9; then
		echo "{_BUSY} $(head -c 200 "$home/holder")"
		exit 3
	fi
done
echo "$who, process $$ there" >"$home/holder"
sweep >/dev/null 2>&1
echo "{_HELD}"
while IFS= read -r _; do :; done
exec >/dev/null 2>&1
sweep
rm -rf "$home"
"""
_NOTE = f'[ ! -d {FOLDER} ] || printf "%s\\n" "$1" >>{FOLDER}/undo'


@contextmanager
def held(nodes: Sequence[Node]) -> Iterator[None]:
    """Hold the machines of `nodes` while the context lasts, and clean them on exit.

    Raises TestbedError when another run holds one, or one does not answer.
    """
    processes: list[Process] = []
    try:
        processes.extend(map(_start, machines(nodes)))
        at_once(lambda each: _wait_held(*each), list(zip(machines(nodes), processes, strict=True)))
        yield
    finally:
        at_once(_end, processes)


def at_end(node: Node, argv: Sequence[str]) -> None:
    """Note a command that root runs on the node's machine when the lease ends.

    It runs even after a run that undid its work itself, so it must do no harm then. Does nothing
    on a machine without a lease, which ends with the run. Raises TestbedError, and ValueError for
    an argument with a line break: each line of the note is a command.
    """
    if any("\n" in word for word in argv):
        raise ValueError("a command of the lease is one line")
    node.root.run(("sh", "-c", _NOTE, "sh", shlex.join(argv)))


def _start(machine: Node) -> Process:
    who = f"{socket.gethostname()}, process {os.getpid()}"
    # without the mark: a lease must not be taken for a command of the run
    shell = ("-u", MARK, "sh", "-c", _SCRIPT, "sh")
    if not machine.has_root:
        return machine.start(("env", *shell, "", who, "user"), lifeline=True)
    by = "root" if machine.root is machine else "sudo"
    return machine.root.start(("env", *shell, FOLDER, who, by), lifeline=True)


def _wait_held(machine: Node, process: Process) -> None:
    line = process.wait_for_line(_SAYS, timeout=_TIMEOUT)
    if line.startswith(_BUSY):
        raise TestbedError(
            f"{machine.name} is in use by {line.removeprefix(_BUSY).strip() or 'another run'}",
            cause="another run or `rocelab doctor` measures there, or lost its connection",
            action=f"Wait until it ends. If it is dead, end its process on {machine.name}, and "
            f"remove {FOLDER} there if that is left.",
        )


def _end(process: Process) -> None:
    # a machine that does not answer is dead, or its lease ends when it loses the connection
    with suppress(TestbedError):
        process.release()
        process.wait(timeout=_END_TIMEOUT)
    process.kill()
