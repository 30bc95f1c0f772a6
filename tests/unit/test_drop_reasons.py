# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's drop reasons, wherever they are written again."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def driver_reasons() -> list[str]:
    """The names of `enum rxe_drop_reason`, in order."""
    header = (ROOT / "kernel/src/rxe_record.h").read_text()
    listed = header.split("#define RXE_DROP_REASONS")[1].split("enum rxe_drop_reason")[0]
    return re.findall(r'EML?\(RXE_DROP_\w+,\s*"(\w+)"\)', listed)


def test_the_script_names_every_reason() -> None:
    """rxedrops.bt stands alone, so it has a list of its own."""
    script = (ROOT / "ebpf/scripts/rxedrops.bt").read_text()
    numbered = dict(re.findall(r'@reason\[(\d+)\] = "(\w+)"', script))
    # 0 is no reason
    assert numbered == {str(i): name for i, name in enumerate(driver_reasons()) if i}


def test_the_page_explains_every_reason() -> None:
    """docs/events.md has a row for each."""
    page = (ROOT / "docs/events.md").read_text().split("## rxe_drop")[1].split("\n## ")[0]
    missing = [name for name in driver_reasons()[1:] if f"`{name}`" not in page]
    assert not missing
