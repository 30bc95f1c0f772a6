# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a plan's cells with both ends on this machine; test_native.py starts it on a node.

native_cells.py PLAN      prints a JSON list of the cells' records, and the testbed's facts
native_cells.py --killed  creates the pair and its devices, and kills itself
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from rocelab.measure.cell import measure
from rocelab.measure.rig import Rig
from rocelab.plans import plan_file
from rocelab.testbed.node.prepare_node import offer_roce_v1
from rocelab.testbed.veth import native

if sys.argv[1] == "--killed":
    native.up(mtu=4200, verbs=True)
    os._exit(9)
plan = plan_file.from_toml(Path(sys.argv[1]).read_text(), "native.toml")
testbed = native.up(mtu=plan.testbed.mtu, verbs=plan.rxe)
try:
    offer_roce_v1(testbed.nodes)
    rig = Rig.on(testbed)
    records = []
    for cell in plan.cells():
        with tempfile.TemporaryDirectory() as folder:
            records.append(measure(cell, rig, Path(folder), observe=plan.probes).record)
finally:
    testbed.down()
print(json.dumps({"cells": records, "environment": testbed.environment()}))
