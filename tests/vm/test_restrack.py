# SPDX-License-Identifier: GPL-2.0-or-later
"""`rdma -dd resource show` says where a queue pair and a completion queue of rxe are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node_program import compile_program
from polling import wait_until
from rocelab.testbed.node import Node, Process
from rocelab.testbed.node.prepare_node import unload
from veth_pair import Pair, veth_pair
from vmlab import PATIENCE, boot_alone, healthy

STEPS = Path(__file__).parent / "verbs_steps.c"
CONTROL = STEPS.with_name("verbs_control.c")
NOBODY = "65534"
FIRST_PSN, RETRIES, UNLIMITED = 1000, 6, 7
Entry = dict[str, Any]
"""What `rdma` says of an object; the driver's values begin with drv_."""
_LIST_MEANWHILE = """
set -e
"$@" >/tmp/calls & calls=$!
n=0
end=$(($(date +%s) + 8))
while [ $n -lt 4 ] || [ "$(date +%s)" -lt $end ]; do
	kill -0 $calls
	for kind in qp cq; do rdma -dd resource show $kind >/tmp/listed; done
	n=$((n + 1))
done
kill $calls # ends a little later
wait $calls
echo listed=$n
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two devices on one machine of two processors."""
    with boot_alone(name="restrack", vcpus=2) as machine, healthy([machine], "restrack"):
        with veth_pair(machine) as pair:
            yield pair
        unload(machine)


@dataclass
class Connection:
    """An RC connection on one machine, which does what a test says."""

    node: Node
    process: Process
    qpns: dict[str, int]
    """Of the queue pair on each device."""
    steps: int = 0

    def do(self, step: str) -> None:
        """Do a step of verbs_steps.c, and wait for its end."""
        self.steps += 1
        self.process.say(step)
        self.process.wait_for_line(f"{self.steps} {step}", timeout=60)

    def _listed(self, *words: str) -> list[Entry]:
        ask = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "rdma", "-dd"]
        shown = self.node.run([*ask, "-j", "resource", "show", *words]).stdout
        entries: list[Entry] = json.loads(shown)
        return entries

    def _qp(self, device: str) -> Entry:
        (entry,) = self._listed("qp", "link", device, "lqpn", str(self.qpns[device]))
        return entry

    def requester(self) -> Entry:
        """Say what `rdma` tells of the queue pair that requests."""
        return self._qp("rxe_b")

    def responder(self) -> Entry:
        """Say what `rdma` tells of the queue pair that answers."""
        return self._qp("rxe_a")

    def cq(self) -> Entry:
        """Say what `rdma` tells of the requester's completion queue."""
        # the kernel's own are on the same device
        (entry,) = (each for each in self._listed("cq", "dev", "rxe_b") if "pid" in each)
        return entry


@contextmanager
def connected(pair: Pair) -> Iterator[Connection]:
    """Run verbs_steps.c: rxe_b requests, rxe_a answers."""
    program = compile_program(pair.node, STEPS, "-libverbs")
    process = pair.node.start([program, "rxe_a", "rxe_b"], lifeline=True)
    try:
        said = process.wait_for_line("connected", timeout=60)
        qpns = map(int, re.findall(r"\d+", said))
        yield Connection(pair.node, process, dict(zip(("rxe_a", "rxe_b"), qpns, strict=True)))
        process.release()
        assert process.wait(timeout=60).returncode == 0
    finally:
        process.kill()


def test_traffic_moves_the_values(pair: Pair) -> None:
    """PSNs, queues and completions are those of the messages that were sent."""
    with connected(pair) as c:
        quiet = c.requester()
        assert quiet["drv_req_psn"] == quiet["drv_comp_psn"] == FIRST_PSN
        assert (quiet["drv_retries"], quiet["drv_rnr_retries"]) == (RETRIES, UNLIMITED)
        assert (quiet["drv_req_state"], quiet["drv_sq_len"], quiet["drv_rq_len"]) == ("idle", 0, 0)
        assert c.responder()["drv_resp_psn"] == FIRST_PSN
        assert (c.cq()["drv_cq_len"], c.cq()["drv_armed"]) == (0, 0)

        for _ in range(3):
            c.do("write")
        after = c.requester()
        assert after["drv_req_psn"] == after["drv_comp_psn"] == FIRST_PSN + 3
        assert (after["drv_req_state"], after["drv_sq_len"]) == ("idle", 0)
        assert c.responder()["drv_resp_psn"] == FIRST_PSN + 3

        c.do("arm")
        assert c.cq()["drv_armed"] == 1
        for _ in range(2):
            c.do("post")
        wait_until("both completed", lambda: c.cq()["drv_cq_len"] == 2)
        assert c.cq()["drv_armed"] == 0


def test_waiting_for_a_receive(pair: Pair) -> None:
    """A requester that met RNR says so, until the receive is there."""
    with connected(pair) as c:
        c.do("send")
        wait_until("RNR", lambda: c.requester()["drv_req_state"] == "rnr")
        waiting = c.requester()
        assert (waiting["drv_sq_len"], waiting["drv_rnr_retries"]) == (1, UNLIMITED)
        assert waiting["drv_comp_psn"] == FIRST_PSN == c.responder()["drv_resp_psn"]
        c.do("receive")
        after = c.requester()
        assert (after["drv_req_state"], after["drv_sq_len"]) == ("idle", 0)
        assert after["drv_comp_psn"] == FIRST_PSN + 1 == c.responder()["drv_resp_psn"]


def test_retries_left(pair: Pair) -> None:
    """On a link that loses everything the retries get fewer; an answer brings them back."""
    loss = ["dev", "veth_b", "root", "netem", "loss", "100%"]
    with connected(pair) as c:
        c.node.run(["tc", "qdisc", "add", *loss])
        try:
            c.do("post")
            wait_until("a retry", lambda: c.requester()["drv_retries"] < RETRIES)
            lost = c.requester()
        finally:
            c.node.run(["tc", "qdisc", "delete", *loss[:3]])
        assert (lost["state"], lost["drv_sq_len"]) == ("RTS", 1)
        assert lost["drv_comp_psn"] == FIRST_PSN
        wait_until("the answer", lambda: c.requester()["drv_comp_psn"] == FIRST_PSN + 1)
        assert c.requester()["drv_retries"] == RETRIES


def test_while_objects_come_and_go(pair: Pair) -> None:
    """Queue pairs are made, moved and destroyed, and queues resized, under the one that lists."""
    program = compile_program(pair.node, CONTROL, "-libverbs", "-pthread")
    with healthy([pair.node], "listed"):
        words = ["sh", "-c", _LIST_MEANWHILE, "sh", program, "rxe_a", "3600", "20261129"]
        done = pair.node.run(words, timeout=8 + 120 * PATIENCE)
    assert re.fullmatch(r"listed=\d+\n", done.stdout), done.stdout
