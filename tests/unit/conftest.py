# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the unit tests: where recorded output lies."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data() -> Path:
    """Real output of the tools; each file's name holds the tool's version."""
    return Path(__file__).parent / "data"
