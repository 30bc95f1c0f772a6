# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors of a driver that cannot be built: whose fault it is, and what to do."""

from __future__ import annotations

from pathlib import Path

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
