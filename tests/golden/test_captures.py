# SPDX-License-Identifier: GPL-2.0-or-later
"""The corpus matches its manifest and golden decodes (renew: `python captures/renew.py`)."""

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
def test_sample_matches_the_manifest(name: str) -> None:
    content = (CAPTURES / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == MANIFEST[name]["sha256"]


@pytest.mark.parametrize("name", sorted(scenarios.SAMPLES))
def test_generated_sample_is_reproducible(name: str) -> None:
    assert scenarios.SAMPLES[name][1]() == (CAPTURES / name).read_bytes()


@pytest.mark.parametrize("name", SAMPLES)
def test_golden(name: str) -> None:
    from renew import golden

    kept = (CAPTURES / "golden" / f"{name}.json").read_text()
    assert json.loads(golden(name)) == json.loads(kept)
