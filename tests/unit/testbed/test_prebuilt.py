# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that were built on one machine, on a host that lacks their libraries."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from rocelab.errors import MissingError
from rocelab.testbed.hosts import prebuilt
from rocelab.testbed.node import Completed, Node

# of a Debian 13 host without libmicrohttpd12t64
LDD = """/tmp/w/rxestat:
\tlinux-vdso.so.1 (0x00007f2a7c5d6000)
\tlibmicrohttpd.so.12 => not found
\tlibbpf.so.1 => /lib/x86_64-linux-gnu/libbpf.so.1 (0x00007f2a7c4f0000)
/tmp/w/linktap:
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2a7c2f0000)
"""


def host(said: str) -> Node:
    def run(argv: Sequence[str], **_: object) -> Completed:
        return Completed(tuple(argv), 0, said, "")

    return cast("Node", SimpleNamespace(name="alpha", run=run))


def test_a_host_that_lacks_a_library() -> None:
    with pytest.raises(MissingError, match=r"alpha lacks libmicrohttpd\.so\.12") as caught:
        prebuilt.check_libraries(host(LDD), ["/tmp/w/rxestat", "/tmp/w/linktap"])
    assert "apt-get install libmicrohttpd-dev" in caught.value.action


def test_a_host_that_has_all() -> None:
    prebuilt.check_libraries(host(LDD.replace("=> not found", "=> /lib/x")), ["/tmp/w/rxestat"])
