# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors of a driver that cannot be built: whose fault it is, and what to do."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polling import wait_until
from rocelab.testbed import changed_driver
from rocelab.testbed.artifacts import Driver
from rocelab.testbed.changed_driver import Source, refusal

MAINLINE = Source(Path("linux"), "v7.2.13", "0aa8a4aeaed3", "7.2.13, git tree 0aa8a4aeaed3")
MINE = [Path("mine/0001-Faster.patch")]
# of `rocelab lines line:7.x+tree:linux@v7.2.13`, the rxe of Debian's linux-source-7.2 7.2.13-1
SERIES = """\
checking file drivers/infiniband/sw/rxe/rxe_net.c
Hunk #2 FAILED at 236.
1 out of 2 hunks FAILED
kernel: 0002-RDMA-rxe-Take-the-length-of-a-packet-from-the-skb.patch does not apply to rxe 7.2.13 \
(file and hunk above)
  likely cause: this kernel's driver has changed since the patch was made
  what to do: take another kernel of the line, or adapt /rocelab/build/module/series/0002-R.patch
make[1]: *** [Makefile:82: /rocelab/build/module/applied] Error 1
make: *** [Makefile:150: changed-module] Error 2
"""
COMPILER = """\
rxe_net.c:1:1: error: unknown type name 'flow'
kernel: the module does not build
  likely cause: see the messages above
  what to do: the whole log is /rocelab/build/module/build.log
make: *** [Makefile:150: changed-module] Error 2
"""


def test_a_tree_to_which_the_series_does_not_apply() -> None:
    """The tree is named, with patch, file and hunk; no file of the sandbox is."""
    error = refusal(SERIES, line="7.x", source=MAINLINE)
    assert error.what == "the driver of linux@v7.2.13 does not fit kernel line 7.x"
    assert error.cause == (
        "checking file drivers/infiniband/sw/rxe/rxe_net.c\nHunk #2 FAILED at 236.\n"
        "1 out of 2 hunks FAILED\n"
        "0002-RDMA-rxe-Take-the-length-of-a-packet-from-the-skb.patch does not apply to rxe "
        "7.2.13: this kernel's driver has changed since the patch was made"
    )
    assert error.action.startswith("Name a commit")
    assert "/rocelab/" not in error.action


def test_a_patch_on_a_tree() -> None:
    """What does not apply is the user's patch, not the tree's fault."""
    said = SERIES.replace(
        "0002-RDMA-rxe-Take-the-length-of-a-packet-from-the-skb", "0001-0001-Faster"
    )
    error = refusal(said, line="7.x", source=MAINLINE, patches=MINE)
    assert error.what == "the driver of line 7.x cannot be built with this change"
    assert "0001-0001-Faster.patch does not apply" in error.cause
    assert error.action == "Correct the patch."


def test_what_does_not_compile() -> None:
    """The compiler's words, and its log."""
    error = refusal(COMPILER, line="7.x", patches=MINE, log=Path("out/build.log"))
    assert error.cause.splitlines()[0].endswith("unknown type name 'flow'")
    assert error.action == "Correct the patch; the whole log is out/build.log."
    both = refusal(COMPILER, line="7.x", patches=MINE, source=MAINLINE)
    assert both.action.startswith("Correct the patch, or name a commit")


def test_a_build_that_says_nothing() -> None:
    """Also without the three lines of the scripts there is a cause."""
    assert refusal("make: oops\n", line="7.x").cause == "make said nothing"
    assert refusal("bwrap: no\n", line="7.x").cause == "bwrap: no"


MAKEFILE = """\
changed-module:
	@mkdir -p $(OUT)/module
	@mkdir $(OUT)/busy
	@test -e $(OUT)/module/rdma_rxe.ko || cat $(GATE)
	@echo '{"kernel_release": "7.2", "patch_id": "0"}' >$(OUT)/module/build.json
	@touch $(OUT)/module/rdma_rxe.ko
	@rmdir $(OUT)/busy
"""
"""Fails where another builds, and ends when the gate has opened."""


def test_two_that_build_the_same_driver_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first, and takes what it has built."""
    recipe = tmp_path / "source/tools/node/build.py"
    recipe.parent.mkdir(parents=True)
    recipe.touch()
    (tmp_path / "source/Makefile").write_text(MAKEFILE)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    patch = tmp_path / "a.patch"
    patch.write_text("a patch")
    monkeypatch.setenv("ROCELAB_SOURCE", str(tmp_path / "source"))
    monkeypatch.setenv("ROCELAB_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("GATE", str(gate))
    waits: list[str] = []

    def build() -> Driver:
        return changed_driver.build("7.x", "instrumented", patches=[patch], say=waits.append)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(build)
        # opening waits for make
        with gate.open("wb"):
            second = pool.submit(build)
            wait_until("the second waits or ends", lambda: waits or second.done(), seconds=60)
        assert first.result() == second.result()
    assert len(waits) == 1
    [built] = (tmp_path / "build/ab/7.x").iterdir()
    assert first.result().module == built / "module/rdma_rxe.ko"
