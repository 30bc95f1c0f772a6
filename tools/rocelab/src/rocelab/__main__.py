# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m rocelab`."""

from rocelab.cli import main

main()
