# SPDX-License-Identifier: GPL-2.0-or-later
"""The run folder: its layout, its file formats and its metrics."""
