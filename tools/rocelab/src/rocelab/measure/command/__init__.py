# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a user's own command on nodes (`rocelab exec`)."""
