# SPDX-License-Identifier: GPL-2.0-or-later
"""Renew corpus.tsv: what the plugin shows for each frame of captures/."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "lib"))

import tshark_plugin  # noqa: E402
from corpus import CAPTURES, IN_WIRESHARK  # noqa: E402

FIELDS = ["rocelab.icrc.status", "rocelab.icrc.expected", "rocelab.fecn", "rocelab.becn"]


def golden(tshark: tshark_plugin.Tshark, samples: list[str]) -> str:
    """A line per frame: capture, frame number, the plugin's fields."""
    # in two parts: reuse would take it for this file's own tag
    lines = ["# SPDX-License-" + "Identifier: CC0-1.0", "\t".join(["# capture", "frame", *FIELDS])]
    for name in samples:
        for number, row in tshark.fields(CAPTURES / name, FIELDS).items():
            cells = [tshark_plugin.flag(row[field]) for field in FIELDS]
            lines.append("\t".join([name, str(number), *cells]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        tshark = tshark_plugin.with_plugin(tshark_plugin.INSTALLED, Path(folder))
        (HERE / "corpus.tsv").write_text(golden(tshark, IN_WIRESHARK))
