# SPDX-License-Identifier: GPL-2.0-or-later
"""The corpus is as its manifest says, and decodes as it did: `python captures/renew.py` renews."""

from __future__ import annotations

import hashlib
import json
import tomllib

import pytest

from corpus import CAPTURES, SAMPLES, scenarios

MANIFEST = tomllib.loads((CAPTURES / "MANIFEST.toml").read_text())


def test_manifest_lists_every_sample() -> None:
    assert sorted(MANIFEST) == SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_the_one_of_the_manifest(name: str) -> None:
    content = (CAPTURES / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == MANIFEST[name]["sha256"]


@pytest.mark.parametrize("name", sorted(scenarios.SAMPLES))
def test_made_sample_can_be_made_again(name: str) -> None:
    assert scenarios.SAMPLES[name][1]() == (CAPTURES / name).read_bytes()


@pytest.mark.parametrize("name", SAMPLES)
def test_golden(name: str) -> None:
    from renew import golden

    kept = (CAPTURES / "golden" / f"{name}.json").read_text()
    assert json.loads(golden(name)) == json.loads(kept)
