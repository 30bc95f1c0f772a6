# SPDX-License-Identifier: GPL-2.0-or-later
"""A missing requirement skips a test on a laptop, with its reason, and fails it in CI."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skip, or with CI=true fail: a green CI means that everything ran."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing requirement: {reason}", pytrace=False)
    pytest.skip(f"{reason} (CI=true makes this a failure)")


def need_program(name: str) -> None:
    """The test runs this program."""
    if not shutil.which(name):
        missing(f"{name} is not installed")
