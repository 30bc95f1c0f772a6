# SPDX-License-Identifier: GPL-2.0-or-later
"""The `rocelab` command. Each subcommand is a module here; this one only brings them together."""

from rocelab.cli.app import main

__all__ = ["main"]
