# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue owns providers, probes and transports: what must list them by hand has all."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import rocelab
from rocelab.plans.catalog import PROBE_PROGRAMS, TRANSPORTS, Probe, Provider
from rocelab.report import palette

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(rocelab.__file__).parent
KINDS = {
    "providers": frozenset(Provider),
    "probes": frozenset(Probe),
    "transports": frozenset(TRANSPORTS),
}
OWNERS = {"plans/catalog.py", "report/palette.py"}


def test_every_transport_has_a_colour() -> None:
    assert set(palette.TRANSPORTS) == set(TRANSPORTS)


def test_the_page_of_plans_describes_each() -> None:
    page = (ROOT / "docs/formats/plan.md").read_text()
    for names in KINDS.values():
        assert [name for name in names if f"`{name}`" not in page and f'"{name}"' not in page] == []


def test_every_probe_is_built_documented_and_run() -> None:
    built = re.search(r"^TOOLS := (.*)$", (ROOT / "ebpf/Makefile").read_text(), re.MULTILINE)
    assert built
    assert built[1].split() == list(PROBE_PROGRAMS)
    for program in PROBE_PROGRAMS:
        assert (ROOT / f"docs/man/{program}.8.md").exists()
    for probe in Probe:
        assert (PACKAGE / f"measure/probes/run_{probe}.py").exists()


def test_no_other_module_lists_them() -> None:
    """A tuple, list, set, dict or Literal with two of the names is a second list."""
    copies = []
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                listed = node.elts
            elif isinstance(node, ast.Dict):
                listed = [key for key in node.keys if key]
            else:
                continue
            words = {item.value for item in listed if isinstance(item, ast.Constant)}
            copies += [
                f"{name}:{node.lineno}: {kind}"
                for kind, names in KINDS.items()
                if len(words & names) > 1 and name not in OWNERS
            ]
    assert copies == []
