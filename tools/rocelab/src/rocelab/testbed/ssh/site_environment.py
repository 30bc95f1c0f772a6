# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment of a host's commands, where programs are in a site's own folders or modules."""

from __future__ import annotations

import re

from rocelab.errors import TestbedError
from rocelab.testbed.node import Node
from rocelab.testbed.ssh.inventory import Host

# a login shell: it defines `module`, both of Environment Modules and of Lmod
_LOADED = """
if [ $# -gt 0 ]; then
	if ! command -v module >/dev/null; then
		echo "its login shell knows no command module" >&2
		exit 1
	fi
	module load "$@" >&2 || exit
fi
exec env -0
"""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_OF_THE_SHELL = re.compile(r"_|PWD|OLDPWD|SHLVL|LOADEDMODULES|_LMFILES_.*|_?Module.*|__.*|MODULE.*")
_MAX_BYTES = 64 << 10
"""Bytes of all variables; Linux takes 128 KiB for each argument of a command."""


def of(node: Node, host: Host) -> tuple[str, ...]:
    """Return the variables, as `NAME=value`, that commands on the host need.

    Raises TestbedError when a module cannot be loaded.
    """
    changed: dict[str, str] = {}
    if host.modules:
        before, after = _environment(node), _environment(node, host.modules)
        changed = {
            name: value
            for name, value in after.items()
            if before.get(name) != value and not _OF_THE_SHELL.fullmatch(name)
        }
    if host.path:
        path = changed.get("PATH") or node.run(("printenv", "PATH")).stdout.strip()
        changed["PATH"] = ":".join((*host.path, path))
    if sum(map(len, changed.values())) > _MAX_BYTES:
        raise TestbedError(
            f"the modules of {host.name} set more than {_MAX_BYTES >> 10} KiB of variables",
            cause="each command on a host gets all of them",
            action="Load fewer modules: only those of MPI and of the benchmarks.",
        )
    return tuple(f"{name}={value}" for name, value in changed.items())


def _environment(node: Node, modules: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the variables of a login shell that has loaded these modules."""
    done = node.run(("bash", "-lc", _LOADED, "bash", *modules), check=False)
    if done.returncode:
        raise TestbedError(
            f"cannot load {' '.join(modules) or 'the environment'} on {node.name}",
            cause=done.stderr.strip()[-500:] or f"bash exited with {done.returncode}",
            action=f"On {node.name}: `bash -lc 'module avail'` lists what there is.",
        )
    pairs = (entry.partition("=") for entry in done.stdout.split("\0"))
    return {name: value for name, _, value in pairs if _NAME.fullmatch(name)}
