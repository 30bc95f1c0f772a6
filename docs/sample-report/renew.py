#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the sample report in build/, and the picture in the README, from a real run.

    .venv/bin/python docs/sample-report/renew.py [runs/20261121T034558Z-demo]

Archives what a report is made of (run.json, cells/*/cell.json, results.parquet) as the test's data,
and builds the report from that. Without a run, builds it from the archive again: after a change to
the report's text. The picture is taken if Debian's `chromium` is there.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rocelab.report import build

SAMPLE = Path(__file__).resolve().parent
PICTURE = SAMPLE.parent / "images" / "report.png"
REPORT = SAMPLE.parents[1] / "build" / "sample-report.html"
ARCHIVE = SAMPLE.parents[1] / "tests" / "unit" / "data" / "sample-run.tar.gz"
_MADE_OF = ("run.json", "results.parquet", "cells/*/cell.json")
_CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--force-device-scale-factor=2",
)  # fmt: skip
_WIDTH, _HEIGHT = 1200, 760


def archive(run: Path) -> None:
    """Pack what a report of `run` is made of, the same bytes for the same run."""
    with (
        ARCHIVE.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(path for pattern in _MADE_OF for path in run.glob(pattern)):
            entry = tarfile.TarInfo(path.relative_to(run).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(entry, content)


def photograph(report: Path) -> None:
    """Take a picture of the report's first screen."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.parent.mkdir(exist_ok=True)
        subprocess.run(
            [
                *_CHROMIUM,
                f"--user-data-dir={folder}/profile",
                f"--window-size={_WIDTH},{_HEIGHT}",
                f"--screenshot={PICTURE}",
                report.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    """Renew the sample, from the run that the command line names if it names one."""
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        archive(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(ARCHIVE) as tar:
            tar.extractall(folder, filter="data")
        REPORT.parent.mkdir(exist_ok=True)
        report = Path(shutil.copyfile(build(Path(folder)), REPORT))
    print(report)
    if shutil.which(_CHROMIUM[0]):
        photograph(report)
        print(PICTURE)


if __name__ == "__main__":
    main()
