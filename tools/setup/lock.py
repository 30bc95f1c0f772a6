#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write tools/rocelab/locks: every Python distribution that is installed, with its hashes.

run.txt is what running rocelab needs, build.txt what building it needs, develop.txt both of them
and what tests and linters need, docs.txt what `make docs` needs. They hold for every Python version
and platform that pyproject.toml permits. `make setup`, `make develop`, `make docs` and `make
install` take nothing else from a registry.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "rocelab"
HEAD = """\
# SPDX-License-Identifier: GPL-2.0-or-later
# Written by `make lock`.
"""


def compile_lock(project: dict[str, object], requirements: list[str], *options: str) -> str:
    """Resolve requirements. Exits if uv fails: its own message is on standard error."""
    python = str(project["requires-python"]).removeprefix(">=")
    done = subprocess.run(
        [
            Path(sysconfig.get_path("scripts")) / "uv",
            *("pip", "compile", "--quiet", "--universal", "--generate-hashes"),
            *("--no-annotate", "--no-header", "--python-version", python),
            *options,
            "-",
        ],
        input="\n".join(requirements),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(
            "lock: uv cannot choose the Python dependencies\n"
            "  likely cause: see above; a requirement of pyproject.toml, or no network\n"
            "  what to do: fix pyproject.toml, and run `make lock` again"
        )
    return HEAD + done.stdout


def main() -> None:
    """Write the files; a distribution has the same version in all of them."""
    document = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    project = document["project"]
    optional, build = project["optional-dependencies"], document["build-system"]["requires"]
    run = [*project["dependencies"], *optional["report"], *optional["lab"]]
    docs = optional.pop("docs")
    extras = [name for extra in optional.values() for name in extra]
    locks = PACKAGE / "locks"
    locks.mkdir(exist_ok=True)
    develop = locks / "develop.txt"
    develop.write_text(compile_lock(project, [*run, *build, *extras]))
    for name, requirements in (("run", run), ("build", build), ("docs", [*run, *docs])):
        text = compile_lock(project, requirements, "--constraints", str(develop))
        (locks / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
