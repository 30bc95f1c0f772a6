# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches of the driver that make it costlier, or wrong, in a known place; a plan that shows it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import vmlab
from rocelab.testbed import artifacts

FOLDER = "drivers/infiniband/sw/rxe"


PLAN = """
[plan]
name = "ab"
repetitions = 1
transports = TRANSPORTS
probes = ["rxestat"]
[testbed]
provider = "veth"
line = "LINE"
icount = true
mtu = 4200
[[benchmark]]
tool = "perftest"
test = "send_lat"
sizes = [64]
iterations = 300
qp_timeout = 18
events = true
"""


@dataclass(frozen=True)
class Edit:
    """`line` comes before the first line with `anchor` that follows the one with `after`."""

    file: str
    anchor: str
    line: str
    after: str = ""


def nops(count: int) -> str:
    """Return a line of C that is so many instructions."""
    return f'asm volatile(".rept {count}; nop; .endr");'


STAGES: Mapping[tuple[str, str], tuple[str, str, str]] = {
    # direction and stage: file, anchor, after; where a stamp ends the stage, before that
    ("tx", "wqe"): ("rxe_req.c", "RXE_ROLE_REQUESTER, RXE_TX_WQE);", ""),
    ("tx", "alloc"): ("rxe_net.c", "attr = rdma_get_gid_attr(", "struct sk_buff *rxe_init_packet("),
    ("tx", "bth"): ("rxe_net.c", "rxe_stamp_tx_pkt_end(pkt, RXE_TX_BTH);", ""),
    ("tx", "route"): ("rxe_net.c", "dst = rxe_find_route(", "static int prepare4("),
    ("tx", "net"): ("rxe_net.c", "rxe_stamp_tx_pkt_end(pkt, RXE_TX_NET);", ""),
    ("tx", "copy"): ("rxe_net.c", "rxe_stamp_tx_pkt_end(pkt, RXE_TX_COPY);", ""),
    ("tx", "icrc"): ("rxe_icrc.c", "icrcp = (", "void rxe_icrc_generate("),
    ("rx", "parse"): ("rxe_recv.c", "parsed = rxe_stamp_rx_parsed(pkt);", ""),
    ("rx", "icrc"): ("rxe_icrc.c", "icrcp = (", "int rxe_icrc_check("),
    ("rx", "exec"): ("rxe_resp.c", "switch (qp_type(qp)) {", "enum resp_states check_psn("),
    ("rx", "copy"): ("rxe_resp.c", "err = copy_data(", "enum resp_states send_data_in("),
    ("rx", "cqe"): ("rxe_cq.c", "addr = queue_producer_addr(", "int rxe_cq_post("),
}
"""Where a line adds to one stage and to no other."""


def costlier(place: tuple[str, str], count: int) -> Edit:
    """So many instructions more in that stage."""
    file, anchor, after = STAGES[place]
    return Edit(file, anchor, nops(count), after)


def write(folder: Path, *patches: Sequence[Edit], line: str = vmlab.LINE) -> Path:
    """Write a folder with a patch for each list of edits, on top of the one before."""
    source = artifacts.driver(line).module.parent / "tree" / FOLDER
    texts: dict[str, list[str]] = {}
    folder.mkdir()
    for number, edits in enumerate(patches, start=1):
        before = {
            edit.file: list(
                texts.setdefault(edit.file, (source / edit.file).read_text().splitlines(True))
            )
            for edit in edits
        }
        for edit in edits:
            _insert(texts[edit.file], edit)
        diff = [
            line
            for file, old in before.items()
            for line in difflib.unified_diff(
                old, texts[file], f"a/{FOLDER}/{file}", f"b/{FOLDER}/{file}"
            )
        ]
        (folder / f"{number:04}-Step.patch").write_text("".join(diff))
    return folder


def _insert(text: list[str], edit: Edit) -> None:
    start = next(at for at, line in enumerate(text) if edit.after in line)
    at = next(at for at in range(start, len(text)) if edit.anchor in text[at])
    text.insert(at, f"\t{edit.line}\n")


def plan(folder: Path, *transports: str) -> Path:
    """Write a plan with 300 messages over each transport."""
    file = folder / "small.toml"
    text = PLAN.replace("LINE", vmlab.LINE).replace("TRANSPORTS", json.dumps(transports))
    file.write_text(text)
    return file
