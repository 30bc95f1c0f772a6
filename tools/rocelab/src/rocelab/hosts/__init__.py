# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepare hosts of your own for measuring, and put back what was there."""
