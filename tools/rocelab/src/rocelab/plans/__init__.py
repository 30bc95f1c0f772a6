# SPDX-License-Identifier: GPL-2.0-or-later
"""The plans that come with rocelab, as TOML files."""
