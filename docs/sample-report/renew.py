#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make the sample report, and the picture in the README, from a real run.

    .venv/bin/python docs/sample-report/renew.py runs/20261121T034558Z-demo

Copies what a report is made of (run.json, cells/*/cell.json, results.parquet), not the raw output,
and builds the report beside it. The picture needs Debian's `chromium`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rocelab.report import build

SAMPLE = Path(__file__).resolve().parent
PICTURE = SAMPLE.parent / "images" / "report.png"
_MADE_OF = ("run.json", "results.parquet", "cells/*/cell.json")
_CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--force-device-scale-factor=2",
)  # fmt: skip
_WIDTH = 1020


def copy(run: Path) -> None:
    """Replace the sample by what a report of `run` is made of."""
    for old in ("cells", "figures"):
        shutil.rmtree(SAMPLE / old, ignore_errors=True)
    for pattern in _MADE_OF:
        for source in sorted(run.glob(pattern)):
            target = SAMPLE / source.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def photograph(report: Path) -> None:
    """Take a picture of the first figure of stages, with no more caption than its accelerator."""
    page = report.read_text(encoding="utf-8")
    head = page[: page.index("<header>")]
    [figure] = re.findall(r'<div class="card" id="stages-.*?(?=<figcaption>)', page, re.DOTALL)[:1]
    [accelerator] = re.findall(r"<p>Accelerator: .*?</p>", page, re.DOTALL)[:1]
    heights = [int(height) for height in re.findall(r'height="(\d+)" viewBox', figure)]
    rows = [max(heights[start : start + 2]) for start in range(0, len(heights), 2)]
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "figure.html"
        part.write_text(
            f"{head}<main>{figure}<figcaption>{accelerator}</figcaption></figure></div></main>"
            "</body></html>",
            encoding="utf-8",
        )
        PICTURE.parent.mkdir(exist_ok=True)
        subprocess.run(
            [
                *_CHROMIUM,
                f"--user-data-dir={folder}/profile",
                f"--window-size={_WIDTH},{sum(rows) + 44 * len(rows) + 176}",
                f"--screenshot={PICTURE}",
                part.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    """Renew the sample from the run that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    copy(Path(sys.argv[1]))
    report = build(SAMPLE)
    photograph(report)
    print(report, PICTURE, sep="\n")


if __name__ == "__main__":
    main()
