# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

import tshark_plugin

# The same examples each time, so that no commit fails by chance; `make test-long` draws others
# (--hypothesis-profile=free). None has a time limit, which a busy machine would break.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("free", deadline=None, max_examples=1000)
settings.load_profile("repeatable")


@pytest.fixture
def data() -> Path:
    """Real output of the tools; each file's name holds the tool's version."""
    return Path(__file__).parent / "data"


@pytest.fixture(scope="module", params=tshark_plugin.WHICH)
def tshark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tshark_plugin.Tshark:
    """A tshark with the plugin: this machine's, then the other Debian's."""
    return tshark_plugin.with_plugin(request.param, tmp_path_factory.mktemp("home"))
