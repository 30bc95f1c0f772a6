# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `veth` for tests: one machine with both ends in it, prepared."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from requirements import missing
from rocelab.errors import MissingError
from rocelab.testbed import artifacts
from rocelab.testbed.node import Node
from rocelab.testbed.preparation import Payload
from rocelab.testbed.veth import veth_testbed as veth
from vmlab import LINE, MTU

LOOP = "rcloop"


@contextmanager
def boot(*, name: str, icount: bool, fresh: bool = False) -> Iterator[veth.VethTestbed]:
    """Both ends, for as long as the context lasts, or until this process ends.

    `fresh`: on a machine that boots, rather than one that is restored.
    """
    try:
        driver = artifacts.driver(LINE)
        probes = [artifacts.probe(probe, LINE) for probe in ("rxestat", "rxedump", LOOP)]
        testbed = veth.up(
            f"{name}-{os.getpid()}",
            line=LINE,
            mtu=MTU,
            icount=icount,
            emulation="tcg",
            fresh=fresh,
            payload=Payload(driver, tuple(probes)),
            lifeline=True,
        )
    except MissingError as error:
        missing(f"{error.what}: {error.action}")
    try:
        testbed.state.mark_prepared()
        yield testbed
    finally:
        testbed.down()


def watched_loop(machine: Node, size: int, batches: int) -> dict[str, Any]:
    """rxestat's document of one run of the loop from rxe0 to rxe1."""
    result = "/run/rocelab/loop.json"
    loop = (LOOP, "rxe0", "rxe1", str(size), str(batches))
    machine.run(("rxestat", "--json", "--xmit", "--output", result, "--", *loop), timeout=600)
    document: dict[str, Any] = json.loads(machine.run(("cat", result)).stdout)
    return document
