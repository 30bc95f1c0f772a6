# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command against every path, environment and stream that is not as it should be.

The cases come from the commands themselves (tests/lib/command_tree.py): a new command and a new
option are swept without a line here.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hostile_sweep
import hostile_world
from command_tree import commands
from requirements import missing
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
_CODES = {0, 1, 2, 3, 4, 5, 125}
"""Every exit code but that of a bug and that of an interruption."""
_LONG = "long" * 30
"""A folder in which no socket can be."""
_TOOLS = ("sh", "timeout", "ssh", "ssh-keygen", "setpriv", "tshark", "env", "true")

Answers = dict[str, list[dict[str, Any]]]


def _world(root: Path) -> dict[str, Any]:
    things = hostile_world.make(root)
    for name in ("cwd", "streams", "home", "runtime", "bin"):
        (root / name).mkdir(mode=0o700)
    for name in _TOOLS:
        if path := shutil.which(name):
            (root / "bin" / name).symlink_to(path)
    # few figures: drawing them takes the most time
    run = Synthetic(
        transports=("tcp",), tests=("write_lat",), sizes=(64,), repetitions=1, traced=False
    )
    runs = [str(run.write(root / "runs" / name)) for name in ("a", "b")]
    capture = str(shutil.copy(ROOT / "captures/testbed-write-lat-64.pcap", root / "good.pcap"))
    trace = str(ROOT / "captures/testbed-rxedump-write-lat-64.pcapng")
    inventory = root / "hosts.toml"
    inventory.write_text('[hosts.a]\nhost = "127.0.0.1"\nport = 1\nnetdev = "lo"\n')
    up = root / "runtime/rocelab/default"
    up.mkdir(parents=True)
    up.parent.chmod(0o700)
    (up / "spec.json").write_text(hostile_world.DEEP)
    bad = {what: str(path) for what, path in things.items()}
    environments: dict[str, dict[str, str | None]] = {
        f"HOME and the like are {what}": dict.fromkeys(
            ("HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "TMPDIR", "ROCELAB_BUILD"), bad[what]
        )
        for what in (
            "missing",
            "a text",
            "a FIFO",
            "a folder without access",
            "a folder without writing",
            "a folder on a full disk",
            "a folder on a read-only disk",
        )
    }
    # not XDG_RUNTIME_DIR: without it, testbeds of whoever runs the tests would be found
    environments["HOME and the like are not set, and the user is unknown"] = dict.fromkeys(
        ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR")
    )
    (root / _LONG).mkdir()
    environments |= {
        "TMPDIR is long": {"TMPDIR": str(root / _LONG)},
        # not XDG_RUNTIME_DIR, for the same reason
        "XDG folders are relative": dict.fromkeys(("XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "xdg"),
    }
    private = {
        "XDG_RUNTIME_DIR": str(root / "runtime"),
        "HOME": str(root / "home"),
        "XDG_CACHE_HOME": str(root / "home/.cache"),
        "TMPDIR": str(root / "home"),
        "ROCELAB_BUILD": os.environ.get("ROCELAB_BUILD", str(ROOT / "build")),
        "PATH": str(root / "bin"),
    }
    return {
        "root": str(root),
        "runtime": str(root / "runtime"),
        "things": bad,
        "environment": private,
        "environments": environments,
        "only": [],
        "good": {
            "up": {"name": ["other"]},
            "ssh": {"node": ["n1"]},
            "exec": {"command": ["true"]},
            "run": {"plan": ["demo"]},
            "show": {"run": runs[:1]},
            "report": {"run": runs[:1]},
            "compare": {"first": runs[:1], "second": runs[1:]},
            "ab": {"base": ["instrumented"], "change": ["events"]},
            "analyze": {"captures": [capture]},
            "export": {
                "where": [capture],
                "trace": [trace],
                "perfetto": [str(root / "cwd/new.json")],
            },
            "join": {"where": [capture], "trace": [trace]},
            "annotate": {"capture": [capture], "output": [str(root / "cwd/new.pcapng")]},
            "study show": {"study": ["gaiser2010"]},
            "study run": {"study": ["gaiser2010"], "quick": [""]},
            "study report": {"run": runs[:1]},
            "hosts prepare": {"inventory": [str(inventory)]},
            "hosts restore": {"inventory": [str(inventory)]},
            "hosts status": {"inventory": [str(inventory)]},
        },
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What each case did, by command."""
    root = tmp_path_factory.mktemp("hostile")
    world = _world(root)
    if not hostile_world.works(root):
        missing("mount namespaces or setpriv do not work on this machine")
    (root / "world.json").write_text(json.dumps(world))
    script = [sys.executable, hostile_sweep.__file__, str(root / "world.json")]
    paths = os.pathsep.join([str(ROOT / "tests/lib"), *sys.path])
    done = subprocess.run(
        hostile_world.inside(root, *script),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-40:]}\n{done.stderr[-3000:]}"
    by_path: Answers = collections.defaultdict(list)
    for line in lines:
        answer = json.loads(line)
        if "case" in answer:
            by_path[answer["case"].partition(":")[0]].append(answer)
    return by_path


@pytest.mark.parametrize("command", [command.name for command in commands()])
def test_a_command_names_what_is_wrong_and_leaves_nothing(command: str, answers: Answers) -> None:
    """A documented exit code, an error of three parts, no traceback, nothing left behind."""
    assert answers[command]
    wrong = [
        f"{one['case']}: {why}\n{one['errors'][-600:]}"
        for one in answers[command]
        for why in _faults(one)
    ]
    assert not wrong, f"{len(wrong)} of {len(answers[command])}:\n" + "\n".join(wrong)


def test_devices_stay_devices(answers: Answers) -> None:
    """Root may replace what is in /dev by renaming a file over it."""
    assert answers
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def _faults(one: dict[str, Any]) -> list[str]:
    said = one["errors"]
    faults = []
    if one["status"] not in _CODES:
        faults.append(f"it ends with {one['status']}")
    if "Traceback" in said or "internal error" in said or "Exception ignored" in said:
        faults.append("it shows a bug")
    if "None" in said:
        faults.append("it says None")
    if "\x1b[2J" in said:
        faults.append("it lets control characters through")
    failed = one["status"] not in (0, 1)
    by_click = said.startswith("Usage:")
    doctor = one["case"].startswith("doctor") and one["status"] == 3
    if failed and one["shows_errors"] and not by_click and not doctor:
        faults += [
            f"it does not say: {part}"
            for part in ("rocelab: ", "likely cause: ", "what to do: ")
            if part not in said
        ]
    # the folder of one's testbeds stays for the next command
    made = (
        f"{folder}: None -> 40{mode} 0" for folder, mode in (("rocelab", 700), ("missing", 755))
    )
    allowed = tuple(made) if "HOME" in one["case"] else ()
    left = [name for name in one["left"] if not (allowed and name.endswith(allowed))]
    if "stdout" in one["case"]:
        # what was asked for may stay, but nothing half written
        left = [name for name in left if Path(name.partition(":")[0]).name.startswith(".")]
    if failed and left:
        faults.append(f"it leaves {left}")
    return faults
