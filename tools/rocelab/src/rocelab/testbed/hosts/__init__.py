# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepare your own hosts for measuring, and restore them."""
