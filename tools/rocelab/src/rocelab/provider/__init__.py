# SPDX-License-Identifier: GPL-2.0-or-later
"""Providers: how nodes come to be."""
