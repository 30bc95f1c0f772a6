# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures runs with Python alone, as on the machines of tests/vm/test_native.py."""

from __future__ import annotations

import subprocess
import sys


def test_a_cell_needs_no_library() -> None:
    code = "import sys; sys.modules['polars'] = None; import rocelab.measure.cell"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
