# SPDX-License-Identifier: GPL-2.0-or-later
"""The `rocelab` command: one module per subcommand."""

from rocelab.cli.app import main

__all__ = ["main"]
