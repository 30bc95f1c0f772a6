# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a file that may be larger than the memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """The content of a file. Raises OSError, and ValueError when it is empty."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            yield content
        finally:
            # views of it that a traceback still refers to keep it open: it goes with them
            with suppress(BufferError):
                content.close()
