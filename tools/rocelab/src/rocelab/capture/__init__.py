# SPDX-License-Identifier: GPL-2.0-or-later
"""Decode, verify and follow RoCE captures with the native core.

>>> import polars as pl
>>> from rocelab import capture
>>> found = capture.read("trace.pcapng")  # doctest: +SKIP
>>> pl.DataFrame(found.packets).group_by("opcode_name").len()  # doctest: +SKIP
"""

from rocelab.capture.analysis import Analysis, Options, analyze, read
from rocelab.capture.select import Select, parse_filter

__all__ = ["Analysis", "Options", "Select", "analyze", "parse_filter", "read"]
