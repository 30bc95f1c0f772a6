# SPDX-License-Identifier: GPL-2.0-or-later
"""Without the extras, captures are analysed, and what else is asked for names the extra."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rocelab import conditions

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = tomllib.loads((ROOT / "tools/rocelab/pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
MODULES = {"vl-convert-python": "vl_convert", "qemu.qmp": "qemu"}
"""By distribution: the module, where its name is another."""

# as if they were not installed
BARE = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Nothing())
from rocelab.cli import main
sys.argv[0] = "rocelab"
main()
"""


def modules(extra: str) -> set[str]:
    names = {name.partition(">")[0] for name in EXTRAS[extra]}
    return {MODULES.get(name, name) for name in names}


def bare(*words: str) -> subprocess.CompletedProcess[str]:
    code = BARE.format(missing=modules("report") | modules("lab"))
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )


def test_every_module_of_an_extra_is_known() -> None:
    assert set(conditions._EXTRAS) == modules("report") | modules("lab")


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "captures/rc-v2-ipv4.pcap"),
        ("analyze", "--json", "captures/fault-drop-before.pcap"),
        ("annotate", "captures/rc-v2-ipv4.pcap", "-o", "{tmp}/a.pcapng"),
        ("doctor", "--help"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_captures_need_no_extra(words: tuple[str, ...], tmp_path: Path) -> None:
    done = bare(*(word.format(tmp=tmp_path) for word in words))
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout + done.stderr
    assert "extra" not in done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("analyze", "captures/rc-v2-ipv4.pcap", "--html", "{tmp}/a.html"), "report"),
        (("show", "{tmp}"), "report"),
    ],
    ids=["html", "show"],
)
def test_what_needs_an_extra_names_it(words: tuple[str, ...], extra: str, tmp_path: Path) -> None:
    done = bare(*(word.format(tmp=tmp_path) for word in words))
    assert done.returncode == 3, done.stderr
    assert f"WHEEL[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr
