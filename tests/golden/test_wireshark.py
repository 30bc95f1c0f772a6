# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's fields over the corpus: `python tests/golden/wireshark/renew.py` renews them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from corpus import SAMPLES
from requirements import need_program

HERE = Path(__file__).parent / "wireshark"


def test_golden(tmp_path: Path) -> None:
    need_program("tshark")
    spec = importlib.util.spec_from_file_location("wireshark_golden", HERE / "renew.py")
    assert spec
    assert spec.loader
    renew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(renew)
    made = renew.golden(tmp_path, SAMPLES)
    kept = (HERE / "corpus.tsv").read_text()
    assert made.splitlines() == kept.splitlines()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_in_it(name: str) -> None:
    assert f"\n{name}\t" in (HERE / "corpus.tsv").read_text()
