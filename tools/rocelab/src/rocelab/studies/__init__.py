# SPDX-License-Identifier: GPL-2.0-or-later
"""Published studies: what they measured, their plans here, their claims as checks.

Pure: files of the package and a run's results go in, data come out.
"""
