# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts of the checkout as modules: they are in no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load(script: str) -> ModuleType:
    """Import a script by its path from the top of the checkout."""
    name = "script_" + script.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, ROOT / script)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for their module
    # Python puts a script's folder first, too
    sys.path.insert(0, str((ROOT / script).parent))
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.path[0]
    return module
