# SPDX-License-Identifier: GPL-2.0-or-later
"""Every kernel line of tables/kernel_lines.csv has a patch series and a node image."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from rocelab import kernel_lines

ROOT = Path(__file__).parents[3]


def test_each_line_has_its_series_and_its_image() -> None:
    series = {path.name for path in (ROOT / "kernel/patches/lines").iterdir()}
    images = {path.stem for path in (ROOT / "tools/node/lines").iterdir()}
    assert series == images == set(kernel_lines.LINES)


def test_one_line_is_the_default() -> None:
    table = (ROOT / "tables/kernel_lines.csv").read_text()
    assert table.count(",yes\n") == 1
    assert kernel_lines.DEFAULT_LINE in kernel_lines.LINES


def test_the_tables_are_read_from_a_zip_file(tmp_path: Path) -> None:
    """The package runs from a zip file on machines where nothing is installed."""
    package = Path(kernel_lines.__file__).parent
    with zipfile.ZipFile(tmp_path / "rocelab.zip", "w") as archive:
        for path in (*package.glob("*.py"), *(package / "tables").glob("*.csv")):
            archive.write(path, path.relative_to(package.parent))
    code = "from rocelab import kernel_lines; print(kernel_lines.DEFAULT_LINE)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "rocelab.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{kernel_lines.DEFAULT_LINE}\n"
