# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the processes of a machine are looked at until none with a mark is left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from requirements import missing
from rocelab.testbed.lease import end_marked

_APART = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
# instead of a look; in a file, since it is called in a command substitution
_COUNT = """
echo 0 >looks
environments() { echo $(($(cat looks) + 1)) >looks; eval "$MEANWHILE"; }
"""


@pytest.mark.parametrize(
    ("meanwhile", "looks"),
    [
        (":", 1),
        # a process more at each look, none of which has the mark
        ("sleep 60 >/dev/null &", 5),
    ],
)
def test_it_looks_again_where_processes_start(tmp_path: Path, meanwhile: str, looks: int) -> None:
    """In a PID namespace, where no other process starts."""
    apart = _APART if os.geteuid() == 0 else [*_APART, "--map-root-user"]
    if subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        missing("PID namespaces do not work on this machine")
    script = f"{end_marked()}{_COUNT}end_marked ^MARK=; cat looks"
    done = subprocess.run(
        [*apart, "sh", "-euc", script],
        cwd=tmp_path,
        env={**os.environ, "MEANWHILE": meanwhile},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) == looks
