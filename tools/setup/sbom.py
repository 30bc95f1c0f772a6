#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print what the wheel contains and needs, as CycloneDX 1.5: crates that are linked into the core,
and the Python distributions of locks/run.txt.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "rocelab"


def component(kind: str, name: str, version: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """An entry of the list; `kind` is that of the package URL."""
    url = f"pkg:{kind}/{name}@{version}"
    return {
        "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url, **more,
    }  # fmt: skip


def crates() -> list[dict[str, Any]]:
    """The crates of the core, without what only builds or tests it."""
    tree = subprocess.run(
        [
            *("cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none"),
            *("--package", "rocelab-py", "--format", "{p}"),
        ],
        cwd=PACKAGE,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    linked = set(re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE))
    lock = tomllib.loads((PACKAGE / "Cargo.lock").read_text())
    return [
        component(
            *("cargo", row["name"], row["version"]),
            hashes=[{"alg": "SHA-256", "content": row["checksum"]}],
        )
        for row in lock["package"]
        # those without a checksum are rocelab's own
        if (row["name"], row["version"]) in linked and "checksum" in row
    ]


def distributions() -> list[dict[str, Any]]:
    """The Python distributions that running needs."""
    text = (PACKAGE / "locks/run.txt").read_text()
    return [
        component("pypi", *match) for match in re.findall(r"^(\S+)==([^\s;]+)", text, re.MULTILINE)
    ]


def main() -> None:
    """Print the document; the same tree gives the same bytes."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": crates() + distributions(),
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
