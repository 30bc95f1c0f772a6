# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE captures made in plain Python.

Nothing here imports rocelab or shares code with its core: these files are what it is tested with.
"""
