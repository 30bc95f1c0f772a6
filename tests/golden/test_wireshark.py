# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's fields over the corpus (renew: `python tests/golden/wireshark/renew.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

import script_module
import tshark_plugin
from corpus import IN_WIRESHARK

HERE = Path(__file__).parent / "wireshark"


@pytest.mark.slow
@pytest.mark.parametrize("which", tshark_plugin.WHICH)
def test_golden(which: str, tmp_path: Path) -> None:
    renew = script_module.load("tests/golden/wireshark/renew.py")
    made = renew.golden(tshark_plugin.with_plugin(which, tmp_path), IN_WIRESHARK)
    kept = (HERE / "corpus.tsv").read_text()
    assert made.splitlines() == kept.splitlines()


@pytest.mark.parametrize("name", IN_WIRESHARK)
def test_every_sample_is_in_it(name: str) -> None:
    assert f"\n{name}\t" in (HERE / "corpus.tsv").read_text()
