# SPDX-License-Identifier: GPL-2.0-or-later
"""One module per benchmark: its command lines, and a parser of its output."""
