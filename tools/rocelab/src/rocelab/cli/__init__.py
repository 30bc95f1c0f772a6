# SPDX-License-Identifier: GPL-2.0-or-later
"""The `rocelab` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line; an interrupt while it loads ends it without a traceback, too."""
    try:
        from rocelab.cli import app
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app.main()


__all__ = ["main"]
