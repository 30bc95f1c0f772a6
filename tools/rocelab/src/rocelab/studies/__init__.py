# SPDX-License-Identifier: GPL-2.0-or-later
"""Published studies: what they measured, plans that repeat them, and their claims as checks.

Pure: the package's files and a run's results go in, data comes out.
"""
