# SPDX-License-Identifier: GPL-2.0-or-later
"""For fake nodes: what rocelab.testbed.node.outputs runs as one command, taken apart again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

_SEVERAL = re.compile(r" </dev/null\necho; echo (rocelab-\w+)\n")


def several(argv: Sequence[str], answer: Callable[[tuple[str, ...]], str]) -> str | None:
    """The output of all the commands in `argv`, each by `answer`; None if it is another one."""
    if tuple(argv[:2]) != ("sh", "-c") or not (marks := set(_SEVERAL.findall(argv[2]))):
        return None
    (mark,) = marks
    words = [shlex.split(one) for one in _SEVERAL.sub("\0", argv[2]).split("\0")[:-1]]
    return "".join(f"{answer(tuple(one))}\n{mark}\n" for one in words)
