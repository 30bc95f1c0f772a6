# SPDX-License-Identifier: GPL-2.0-or-later
"""Renew the corpus and its golden decodes: `python captures/renew.py [NAME…]`.

Without names, renews all generated samples, all goldens, and the manifest; with names, the goldens
of these samples. Samples with another origin (a testbed's captures) stay as they are. `--check`
changes nothing and fails if anything would change.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from scenarios import SAMPLES  # noqa: E402

MANIFEST = HERE / "MANIFEST.toml"
GOLDEN = HERE / "golden"


def golden(name: str) -> str:
    """Return the analysis of a sample, as stored in its golden."""
    from rocelab import capture

    before = Path.cwd()
    os.chdir(HERE)
    try:
        result = capture.analyze([name], capture.Options(threads=1)).result
    finally:
        os.chdir(before)
    return layout(result) + "\n"


def has_rows(value: object) -> bool:
    """Return whether the value contains a list of objects."""
    if isinstance(value, dict):
        return any(has_rows(one) for one in value.values())
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def layout(value: object, indent: int = 0) -> str:
    """Format as JSON with a line per finding, direction, wrong packet, and group of sums."""
    if not has_rows(value):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    inner, outer = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {layout(value[key], indent + 1)}" for key in sorted(value)]
        return "{" + inner + ("," + inner).join(rows) + outer + "}"
    assert isinstance(value, list)
    rows = [layout(one, indent + 1) for one in value]
    return "[" + inner + ("," + inner).join(rows) + outer + "]"


def manifest(others: dict[str, dict[str, str]]) -> str:
    """Return MANIFEST.toml: generated samples, and the others as in the old manifest."""
    rows = {name: {"shows": shows, "origin": "captures/scenarios.py"}
            for name, (shows, _) in SAMPLES.items()} | others  # fmt: skip
    # in two parts: reuse would mistake it for this file's own tag
    out = ["# SPDX-License-" + "Identifier: CC0-1.0", "# Made by captures/renew.py."]
    for name in sorted(rows):
        digest = hashlib.sha256((HERE / name).read_bytes()).hexdigest()
        row = rows[name]
        out += ["", f'["{name}"]', f"shows = {json.dumps(row['shows'], ensure_ascii=False)}",
                f"origin = {json.dumps(row['origin'], ensure_ascii=False)}",
                f'sha256 = "{digest}"']  # fmt: skip
    return "\n".join(out) + "\n"


def others() -> dict[str, dict[str, str]]:
    """Return the samples without a generator."""
    if not MANIFEST.exists():
        return {}
    rows = tomllib.loads(MANIFEST.read_text())
    return {name: row for name, row in rows.items() if row["origin"] != "captures/scenarios.py"}


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [argument for argument in arguments if argument != "--check"]
    external = others()
    contents: dict[Path, bytes] = {}
    if not names:
        contents |= {HERE / name: make() for name, (_, make) in SAMPLES.items()}
    if not check:
        for path, content in contents.items():
            path.write_bytes(content)
    for name in names or [*SAMPLES, *external]:
        contents[GOLDEN / f"{name}.json"] = golden(name).encode()
    if not names:
        contents[MANIFEST] = manifest(external).encode()
    stale = [p for p, new in contents.items() if not p.exists() or p.read_bytes() != new]
    if check:
        for path in stale:
            print(f"{path.relative_to(HERE)} would change: run captures/renew.py")
        return bool(stale)
    GOLDEN.mkdir(exist_ok=True)
    for path, content in contents.items():
        path.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
