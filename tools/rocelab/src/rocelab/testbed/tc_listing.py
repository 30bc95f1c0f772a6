# SPDX-License-Identifier: GPL-2.0-or-later
"""Read what tc(8) shows of a node as JSON."""

from __future__ import annotations

from typing import Any

from rocelab import json_text
from rocelab.errors import CellError
from rocelab.testbed.node import Node


def read(node: Node, *words: str, subject: str) -> list[dict[str, Any]]:
    """Return what `tc -s -j` and `words` list; `subject` names it in errors. Raises CellError."""
    argv = ("tc", "-s", "-j", *words)
    done = node.run(argv, check=False)
    try:
        return [dict(each) for each in json_text.parse_any(done.stdout)]
    except (ValueError, TypeError) as error:
        raise CellError(
            f"cannot read {subject} on {node.name}",
            cause=done.stderr.strip()[-200:] or f"tc printed {done.stdout!a:.80}",
            action=f"On {node.name}: run `{' '.join(argv)}`.",
        ) from error
