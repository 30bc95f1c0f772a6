# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's events agree with its counters, with arithmetic, and with provoked faults."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rxe_trace
from hostile import HOSTILE, ROUTER_ALERT, send
from rocelab.testbed import artifacts
from rocelab.testbed.node import Completed, Node
from rocelab.testbed.node.prepare_node import DEVICE, add_device, check_driver, remove_device
from rxe_trace import PACKETS, STAGES, Event, Tasks, count, named, tracing
from veth_pair import PROGRAM, Pair, veth_pair
from vmlab import LINE

SECOND = 1_000_000_000
TOP = Path(__file__).parents[2]
SCRIPT, PAGE = TOP / "ebpf/scripts/rxeanswered.py", TOP / "docs/howto/events.md"
"""The recipes for ordinary tools."""
LOOP = ("env", "ACK_TIMEOUT=20", PROGRAM, "rxe_a", "rxe_b", "rc", "write", "64", "1", "4")
"""Eight messages, none of which a slow kernel sends twice."""


@pytest.fixture
def pair(n1: Node) -> Iterator[Pair]:
    """Two devices on the first node."""
    with veth_pair(n1) as pair:
        yield pair


def moved(before: dict[str, int], after: dict[str, int]) -> Counter[str]:
    """Return the increments of the counters."""
    return Counter({name: after[name] - before[name] for name in after})


def check_packets(events: list[Event]) -> None:
    """Check invariants of every packet event: no stale and no torn values."""
    begin = [event.number("begin") for event in events]
    for event in events:
        for stage, ns in event.stages().items():
            assert ns < 60 * SECOND, f"{stage} of {event}"
        if event.name == "rxe_tx_packet":
            stages = event.stages()
            # an answer has no work request; a request spends time in every stage
            if event["role"] == "responder":
                assert stages.pop("wqe") == 0, event
            assert all(stages.values()), event
        assert event["net"] == "v2-ipv4"
        # the rest of BTH, payload, padding and ICRC are extended headers
        rest = event.number("paylen") - event.number("payload")
        assert 16 <= rest <= 16 + 3 + 40, event
    assert max(begin) - min(begin) < 600 * SECOND


def check_order(sent: list[Event]) -> None:
    """Each half of a queue pair sends one packet at a time, so a stale time would overlap."""
    ended: dict[tuple[str, str, str], int] = {}
    for event in sent:
        half = (event["dev"], event["qpn"], event["role"])
        assert event.number("begin") >= ended.get(half, 0), event
        ended[half] = event.number("begin") + sum(event.stages().values())


def parts(operation: str) -> set[str]:
    """Return the opcodes of a message of three or more packets."""
    return {f"{operation}_{part}" for part in ("FIRST", "MIDDLE", "LAST")}


OPERATIONS = [
    # transport, operation, size, opcodes of the requests, opcodes of the answers
    ("rc", "send", 0, {"RC_SEND_ONLY"}, {"RC_ACKNOWLEDGE"}),
    ("rc", "send", 65, {"RC_SEND_ONLY"}, {"RC_ACKNOWLEDGE"}),
    ("rc", "send_imm", 4096, {"RC_SEND_ONLY_WITH_IMMEDIATE"}, {"RC_ACKNOWLEDGE"}),
    ("rc", "write", 9001, parts("RC_RDMA_WRITE"), {"RC_ACKNOWLEDGE"}),
    ("rc", "write_imm", 1, {"RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE"}, {"RC_ACKNOWLEDGE"}),
    ("rc", "read", 64, {"RC_RDMA_READ_REQUEST"}, {"RC_RDMA_READ_RESPONSE_ONLY"}),
    ("rc", "read", 9001, {"RC_RDMA_READ_REQUEST"}, parts("RC_RDMA_READ_RESPONSE")),
    ("rc", "cas", 8, {"RC_COMPARE_SWAP"}, {"RC_ATOMIC_ACKNOWLEDGE"}),
    ("rc", "fadd", 8, {"RC_FETCH_ADD"}, {"RC_ATOMIC_ACKNOWLEDGE"}),
    ("uc", "send", 9001, parts("UC_SEND"), set()),
    ("uc", "write", 64, {"UC_RDMA_WRITE_ONLY"}, set()),
    ("ud", "send", 1000, {"UD_SEND_ONLY"}, set()),
    ("ud", "send_imm", 3, {"UD_SEND_ONLY_WITH_IMMEDIATE"}, set()),
]  # fmt: skip


# also for an empty message, which copies nothing
COPIED = re.compile("_SEND_|_WRITE_|_READ_RESPONSE_|_ATOMIC_ACK")


def test_every_operation(pair: Pair) -> None:
    """Each packet of each operation is in each event once, in agreement with the counters."""
    for transport, operation, size, requests, answers in OPERATIONS:
        label = f"{transport} {operation} {size}"
        before = pair.counters()
        with tracing(pair.node, *PACKETS) as trace:
            pair.loop(transport, operation, size, batches=2)
        counted = moved(before, pair.counters())
        messages = 3 * 16
        check_packets(trace.events)
        check_order(trace.named("rxe_tx_packet"))

        tx, rx, done = (trace.named(name) for name in PACKETS)
        assert len(tx) == counted["sent_pkts"], label
        assert len(rx) == len(done) == counted["rcvd_pkts"] == counted["sent_pkts"], label
        assert counted["send_err"] == 0, label
        for events in (tx, rx, done):
            assert set(count(events, "op")) == requests | answers, label
            assert set(count(events, "flags")) <= {"", "switched"}, label
        assert count(tx, "op") == count(rx, "op") == count(done, "op"), label

        # N messages of S bytes are N * max(1, ceil(S / MTU)) packets that carry them
        carriers = answers if operation == "read" else requests
        carrying = [event for event in tx if event["op"] in carriers]
        payload = 0 if operation in ("cas", "fadd") else size
        assert len(carrying) == messages * max(1, math.ceil(payload / pair.mtu)), label
        assert sum(event.number("payload") for event in carrying) == messages * payload, label

        # requests end at the responder, answers at the requester
        for event in rx + done:
            expected = "responder" if event["op"] in requests else "requester"
            assert event["role"] == expected, label
        # packets with data have a copy, answered packets a reply
        for event in done:
            stages = event.stages()
            assert (stages["copy"] > 0) == bool(COPIED.search(event["op"])), event
            assert stages["exec"] > 0, event
            assert stages["queue"] > 0, event
            if event["op"] in answers or not answers:
                assert stages["reply"] == 0, event
            elif event["op"] not in ("RC_RDMA_WRITE_FIRST", "RC_RDMA_WRITE_MIDDLE"):
                assert stages["reply"] > 0, event
        # every PSN once in each direction
        psns = Counter((event["dev"], event["qpn"], event["psn"], event["role"]) for event in tx)
        assert set(psns.values()) == {1}, label


def test_loopback_is_flagged(pair: Pair) -> None:
    """A looped back packet has the flag `loopback` in every event."""
    with tracing(pair.node, *PACKETS) as trace:
        pair.loop("rc", "write", 64, batches=2, peer="rxe_a")
    check_packets(trace.events)
    for name in PACKETS:
        events = trace.named(name)
        assert len(events) == 2 * 3 * 16, name
        assert all("loopback" in event["flags"].split("|") for event in events), name


def test_tasks_and_handler(pair: Pair) -> None:
    """Each begin has its end; each packet's events lie within a task or the receive handler."""
    tasks = Tasks.of(LINE)
    with tracing(pair.node) as trace:
        pair.loop("rc", "send", 64, batches=5)
    open_tasks: Counter[tuple[str, str, str]] = Counter()
    handlers = 0
    inside = Counter[str]()
    for event in trace.events:
        if event.name in ("rxe_task_begin", "rxe_task_end"):
            key = (event["dev"], event["qpn"], event["task"])
            assert event["task"] in tasks.names()
            open_tasks[key] += 1 if event.name == "rxe_task_begin" else -1
            assert open_tasks[key] in (0, 1), event
        elif event.name == "rxe_rx_begin":
            handlers += 1
        elif event.name == "rxe_rx_end":
            handlers -= 1
        elif event.name == "rxe_rx_packet":
            assert handlers == 1, event
            inside["handler"] += 1
        elif event.name == "rxe_tx_packet":
            task = tasks.requester if event["role"] == "requester" else tasks.responder
            assert open_tasks[(event["dev"], event["qpn"], task)] == 1, event
            inside[event["role"]] += 1
        elif event.name == "rxe_rx_done":
            task = tasks.completer if event["role"] == "requester" else tasks.responder
            assert open_tasks[(event["dev"], event["qpn"], task)] == 1, event
    assert handlers == 0
    assert set(open_tasks.values()) == {0}
    assert inside == {"handler": 192, "requester": 96, "responder": 96}


def test_loss(pair: Pair) -> None:
    """Under loss, the rare events agree with the counters, and all data arrives."""
    # ARP asks once a second, and resolving a queue pair's address times out after that
    pair.loop("rc", "write", 1, batches=1, chain=1)
    for end in "ab":
        pair.node.run(["tc", "qdisc", "add", "dev", f"veth_{end}", "root", "netem", "loss", "4%"])
    before = pair.counters()
    try:
        with tracing(pair.node, buffer_kb=65536) as trace:
            for operation in ("write", "read", "fadd", "send"):
                pair.loop("rc", operation, 9001, batches=4, ack_timeout=14)
    finally:
        for end in "ab":
            pair.node.run(["tc", "qdisc", "delete", "dev", f"veth_{end}", "root"])
    counted = moved(before, pair.counters())
    naks = trace.named("rxe_nak")
    again = count(trace.named("rxe_retransmit"), "reason")
    assert counted["completer_retry_err"] == again.total() > 0, "the loss caused no retransmission"
    assert set(again) <= {"timeout", "seq_nak", "implied_nak"}
    assert set(count(naks, "syndrome")) == {"psn_sequence_error"}
    directions = count(naks, "dir")
    # each NAK answers one packet that came out of sequence; NAKs may be lost too
    assert directions["sent"] >= directions["received"] >= again["seq_nak"] > 0
    drops = count(trace.named("rxe_drop"), "reason")
    # a retransmission may arrive when its queue pair is gone
    assert set(drops) <= {"sequence", "unexpected", "qpn"}
    assert drops["sequence"] >= directions["sent"] == counted["out_of_seq_request"]
    assert len(trace.named("rxe_timeout")) >= again["timeout"]
    assert len(trace.named("rxe_tx_packet")) == counted["sent_pkts"] + counted["send_err"]
    assert len(trace.named("rxe_rx_packet")) == counted["rcvd_pkts"]
    assert len(trace.named("rxe_rx_done")) == counted["rcvd_pkts"]
    for event in trace.named("rxe_retransmit"):
        behind = (event.number("next_psn") - event.number("psn")) & 0xFFFFFF
        assert 0 < behind < 1 << 23, event


def test_receiver_not_ready(pair: Pair) -> None:
    """Both ends report an RNR NAK, then the end of the wait, then the retransmission."""
    before = pair.counters()
    with tracing(pair.node) as trace:
        pair.loop("rc", "send_late", 64, batches=1, chain=1)
    counted = moved(before, pair.counters())
    steps = count(trace.named("rxe_rnr"), "step")
    assert steps["sent"] == counted["send_rnr_err"] >= 2
    assert steps["received"] == counted["rcvd_rnr_err"] == steps["sent"]
    assert count(trace.named("rxe_retransmit"), "reason") == {"rnr": steps["expired"]}
    assert count(trace.named("rxe_drop"), "reason") == {"no_rq_wqe": steps["sent"]}
    # verbs_loop asks for 0.64 ms, code 12
    assert {e["timer"] for e in trace.named("rxe_rnr") if e["step"] != "expired"} == {"12"}


def test_access_error(pair: Pair) -> None:
    """A refused key causes a NAK at both ends and moves both queue pairs to error, with causes."""
    with tracing(pair.node) as trace:
        pair.loop("rc", "write_denied", 64, batches=1, chain=4)
    naks = trace.named("rxe_nak")
    assert count(naks, "dir") == {"sent": 1, "received": 1}
    assert {event["syndrome"] for event in naks} == {"remote_access_error"}
    changes = trace.named("rxe_qp_state")
    modified = [(e["old"], e["new"]) for e in changes if e["cause"] == "modify"]
    assert Counter(modified) == {("RESET", "INIT"): 2, ("INIT", "RTR"): 2, ("RTR", "RTS"): 2}
    errors = {e["cause"]: (e["old"], e["new"]) for e in changes if e["cause"] != "modify"}
    assert errors == {"completer": ("RTS", "ERR"), "responder": ("RTS", "ERR")}


def test_completion_queue_overflow(pair: Pair) -> None:
    """A completion lost to a full queue is reported with the queue's size."""
    with tracing(pair.node) as trace:
        pair.loop("rc", "cq_full", 64, batches=1, chain=16)
    lost = trace.named("rxe_cq_error")
    assert lost
    assert len(lost) <= 16 - lost[0].number("entries")
    assert len(set(count(lost, "cqn"))) == 1


def test_hostile_packets(n1: Node, n2: Node) -> None:
    """Invalid packets are dropped with their reasons and not counted as received."""
    counter = f"/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/rcvd_pkts"
    before = n1.run(["cat", counter]).stdout
    other = "10.44.99.1"
    n1.run(["ip", "addr", "add", f"{other}/32", "dev", "lo"])
    n2.run(["ip", "route", "add", f"{other}/32", "via", n1.link.ipv4])
    expected = [*HOSTILE, "dgid", "no_device"]
    arrived = f"until [ $(grep -c rxe_drop: {rxe_trace.TRACING}/trace) -ge $1 ]; do :; done"
    try:
        with tracing(n1) as trace:
            packets = [(options, n1.link.ipv4, body) for options, body in HOSTILE.values()]
            send(n2, *packets, (ROUTER_ALERT, other, bytes(64)))
            # one link and one queue keep the order: the other node's last packet arrives last
            seen = ["timeout", "180", "sh", "-c", arrived, "sh"]
            n1.run([*seen, str(len(expected) - 1)], timeout=210)
            send(n1, ("", "127.0.0.1", bytes(64)))
            n1.run([*seen, str(len(expected))], timeout=210)
    finally:
        n2.run(["ip", "route", "delete", f"{other}/32"])
        n1.run(["ip", "addr", "delete", f"{other}/32", "dev", "lo"])
    drops = trace.named("rxe_drop")
    assert [drop["reason"] for drop in drops] == expected
    for drop, (_, body) in zip(drops, HOSTILE.values(), strict=False):
        # the packet's destination queue pair, if the packet is long enough to have one
        assert drop.number("qpn") == int.from_bytes(body[4:8], "big"), drop
        assert drop.number("len") == len(body), drop
    assert drops[-1]["dev"] == "-1"
    assert trace.named("rxe_rx_packet") == []
    assert n1.run(["cat", counter]).stdout == before


def test_switching_under_traffic(pair: Pair) -> None:
    """Toggling events in mid-packet leaves no stale times and reports no packet twice."""
    names = " ".join(f"{rxe_trace.TRACING}/events/rxe/{name}/enable" for name in PACKETS)
    script = f"while :; do for f in {names}; do echo 0 > $f; echo 1 > $f; done; done"
    before = pair.counters()
    with tracing(pair.node, *PACKETS, buffer_kb=65536) as trace:
        switcher = pair.node.start(["sh", "-c", script])
        try:
            for _ in range(4):
                pair.loop("rc", "write", 64, batches=60)
                pair.loop("rc", "read", 9001, batches=8)
        finally:
            switcher.kill()
    counted = moved(before, pair.counters())
    check_packets(trace.events)
    for name in PACKETS:
        events = trace.named(name)
        assert 0 < len(events) <= counted["sent_pkts"], name
    check_order(trace.named("rxe_tx_packet"))


CHURN = """
import sys
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
import pyverbs.enums as e

with Context(name=sys.argv[1]) as context, PD(context) as pd, CQ(context, 16) as cq:
    for i in range(int(sys.argv[2])):
        kind = (e.IBV_QPT_RC, e.IBV_QPT_UC, e.IBV_QPT_UD)[i % 3]
        init = QPInitAttr(qp_type=kind, scq=cq, rcq=cq, cap=QPCap(4, 4, 1, 1))
        qp = QP(pd, init)
        attr = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            attr.qkey = 0x11111111
        qp.to_init(attr)
        if i % 2:
            attr = QPAttr(qp_state=e.IBV_QPS_ERR)
            qp.modify(attr, e.IBV_QP_STATE)
        qp.close()
"""


def test_a_thousand_queue_pairs(pair: Pair) -> None:
    """Creating and destroying 1,000 traced queue pairs next to traffic leaks nothing."""
    in_use = ["sh", "-c", "rdma -j resource show qp | tr '{' '\\n' | grep -c rxe_"]
    with tracing(
        pair.node, "rxe_qp_state", "rxe_task_begin", "rxe_task_end", *PACKETS, buffer_kb=65536
    ) as trace:
        before = pair.node.run(in_use, check=False).stdout
        churn = pair.node.start(["python3", "-c", CHURN, "rxe_a", "1000"])
        try:
            for _ in range(3):
                pair.loop("rc", "write", 64, batches=20)
            done = churn.wait(timeout=300)
        finally:
            churn.kill()
        assert done.returncode == 0, done.stderr
        assert pair.node.run(in_use, check=False).stdout == before
    changes = Counter((e["old"], e["new"]) for e in trace.named("rxe_qp_state"))
    # 3 runs of verbs_loop have two connected queue pairs each
    assert changes[("RESET", "INIT")] == 1000 + 6
    assert changes[("INIT", "ERR")] == 500
    assert changes[("RTR", "RTS")] == 6


def test_link_deleted_under_traffic(pair: Pair) -> None:
    """Deleting a traced device that is sending ends its user and nothing else."""
    with tracing(pair.node) as trace:
        traffic = pair.node.start([PROGRAM, "rxe_a", "rxe_b", "rc", "write", "64", "100000"])
        try:
            counter = "/sys/class/infiniband/rxe_a/ports/1/hw_counters/sent_pkts"
            moving = f"until [ $(cat {counter}) -gt 500 ]; do :; done"
            pair.node.run(["timeout", "180", "sh", "-c", moving], timeout=210)
            # the kernel waits for the user, who waits for ever, so end the user first
            deletion = pair.node.start(["rdma", "link", "delete", "rxe_a"])
            pair.node.run(
                [
                    "timeout",
                    "180",
                    "sh",
                    "-c",
                    "while rdma link show rxe_a/1 2>/dev/null | grep -q ACTIVE; do :; done",
                ],
                timeout=210,
            )
        finally:
            traffic.kill()
        assert deletion.wait(timeout=120).returncode == 0
    assert len(trace.named("rxe_tx_packet")) > 500
    pair.node.run(["rdma", "link", "add", "rxe_a", "type", "rxe", "netdev", "veth_a"])
    pair.loop("rc", "write", 64, batches=1)


# in a network namespace without other devices; port 4791 is 12B7
LINKS = """
ip link add d0 type veth peer name d1
rdma link add rxe_d type rxe netdev d0
rdma link add rxe_d type rxe netdev d1 2>/dev/null && echo "two of a name"
rdma link delete rxe_d
grep -ih :12b7 /proc/net/udp /proc/net/udp6
exit 0
"""


@pytest.mark.skipif(LINE in ("6.1", "6.12"), reason="the module has the sockets, not the device")
def test_sockets_close_with_the_last_link(n1: Node) -> None:
    """A link that could not be added leaves no UDP socket open."""
    n1.run(["ip", "netns", "add", "links"])
    try:
        done = n1.run(["ip", "netns", "exec", "links", "sh", "-c", LINKS])
        assert (done.stdout, done.stderr) == ("", "")
    finally:
        n1.run(["ip", "netns", "delete", "links"])


@pytest.mark.distribution
def test_unload(n1: Node) -> None:
    """Unloading fails as busy while a probe is attached; afterwards unload and reload work."""
    probe = n1.start(["rxestat"])
    try:
        probe.wait_for_line("rxestat: ready", timeout=120)
        refused = n1.run(["rmmod", "rdma_rxe"], check=False)
        assert refused.returncode != 0
        assert "in use" in refused.stderr
        # the kernel's own error; EBUSY is for modules that others depend on
        asked = n1.run(["python3", "-c", DELETE_MODULE])
        assert asked.stdout.strip() in ("EAGAIN", "EBUSY"), asked
        assert n1.run(["test", "-d", "/sys/module/rdma_rxe"], check=False).returncode == 0
        probe.interrupt()
        probe.wait(timeout=60)
    finally:
        probe.kill()
    remove_device(n1)
    # the kernel releases a program some time after its last user
    n1.run(["timeout", "180", "sh", "-c", "until rmmod rdma_rxe; do :; done"], timeout=210)
    assert n1.run(["test", "-d", "/sys/module/rdma_rxe"], check=False).returncode == 1
    n1.run(["modprobe", "rdma_rxe"])
    add_device(n1)
    check_driver(n1, artifacts.driver(LINE))


# rmmod looks at the reference count and does not ask the kernel
DELETE_MODULE = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
O_NONBLOCK, SYS_delete_module = os.O_NONBLOCK, {"x86_64": 176, "aarch64": 106}[os.uname().machine]
result = libc.syscall(SYS_delete_module, b"rdma_rxe", O_NONBLOCK)
print("removed" if result == 0 else errno.errorcode[ctypes.get_errno()])
"""


@pytest.mark.distribution
def test_module_says_what_it_is(n1: Node) -> None:
    """Version, events and types show that the loaded module is the one that was built."""
    driver = artifacts.driver(LINE)
    version = n1.run(["cat", "/sys/module/rdma_rxe/version"]).stdout.strip()
    assert version == f"rocelab-{driver.patch_id}"
    assert len(driver.patch_id) == 12
    events = n1.run(["ls", f"{rxe_trace.TRACING}/events/rxe"]).stdout.split()
    assert {name for name in events if name.startswith("rxe_")} == {
        *PACKETS, "rxe_tx_stamps", "rxe_rx_stamps",
        "rxe_task_begin", "rxe_task_end", "rxe_rx_begin", "rxe_rx_end",
        "rxe_retransmit", "rxe_timeout", "rxe_nak", "rxe_rnr", "rxe_drop", "rxe_qp_state",
        "rxe_cq_error",
    }  # fmt: skip
    types = n1.run(
        ["bpftool", "btf", "dump", "file", "/sys/kernel/btf/rdma_rxe"], timeout=120
    ).stdout
    for name in (
        "rxe_tx_record",
        "rxe_rx_record",
        "rxe_done_record",
        "rxe_tx_stamps",
        "rxe_rx_stamps",
    ):
        assert f"STRUCT '{name}'" in types


@pytest.mark.distribution
def test_install_scripts(n1: Node) -> None:
    """The scripts for users: self-check, uninstall, and install again."""
    driver = artifacts.driver(LINE)
    scripts = sorted((Path(__file__).parents[2] / "kernel/scripts").glob("*.sh"))
    n1.run(["mkdir", "-p", "/tmp/kernel"])
    for script in scripts:
        n1.put(script, f"/tmp/kernel/{script.name}")
    n1.put(driver.module, "/tmp/kernel/rdma_rxe.ko")

    def run(name: str, *words: str, sys: str = "/sys", check: bool = True) -> Completed:
        command = ["env", f"SYS={sys}", "sh", f"/tmp/kernel/{name}.sh", *words]
        return n1.run(command, timeout=300, check=check)

    def path() -> str:
        return n1.run(["modinfo", "-n", "rdma_rxe"]).stdout.strip()

    assert "events: 16" in run("self-check", driver.patch_id).stdout
    wrong = run("self-check", "0123456789ab", check=False)
    assert wrong.returncode == 1
    assert f"is 'rocelab-{driver.patch_id}', not 'rocelab-0123456789ab'" in wrong.stderr
    assert run("self-check", "", check=False).returncode == 1
    try:
        run("uninstall", driver.release)
        stock = f"{driver.release}/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko"
        assert path().removesuffix(".xz").endswith(stock)
        # with enforced signatures, an unsigned module would only hide the stock one
        enforcing = "/tmp/enforcing/module/module/parameters"
        n1.run(["mkdir", "-p", enforcing])
        n1.run(["tee", f"{enforcing}/sig_enforce"], stdin="Y\n")
        install = ("install", "/tmp/kernel/rdma_rxe.ko", driver.release)
        refused = run(*install, sys="/tmp/enforcing", check=False)
        assert refused.returncode == 1
        assert "loads signed modules only" in refused.stderr
        assert "mokutil" in refused.stderr
        assert path().removesuffix(".xz").endswith(stock)
    finally:
        done = run("install", "/tmp/kernel/rdma_rxe.ko", driver.release)
    assert f"loaded rdma_rxe (rocelab-{driver.patch_id})" in done.stdout
    assert f"in use: {DEVICE} on {n1.link.netdev}" in done.stdout
    assert path() == f"/lib/modules/{driver.release}/updates/rdma_rxe.ko"


def test_ordinary_tools(pair: Pair) -> None:
    """perf and trace-cmd print the events with names instead of numbers."""
    pair.node.run(
        ["perf", "record", "-qa", "-o", "/tmp/perf.data", "-e", "rxe:*", "--", *LOOP], timeout=120
    )
    text = pair.node.run(["perf", "script", "-i", "/tmp/perf.data"], timeout=120).stdout
    events = rxe_trace.parse(text)
    tx = named(events, "rxe_tx_packet")
    assert count(tx, "op") == {"RC_RDMA_WRITE_ONLY": 8, "RC_ACKNOWLEDGE": 8}
    assert all(set(e.stages()) == set(STAGES["rxe_tx_packet"]) for e in tx)
    assert ("INIT", "RTR") in {(e["old"], e["new"]) for e in named(events, "rxe_qp_state")}

    counted = ["rxe_tx_packet", "rxe_rx_done", "rxe_drop"]
    names = ",".join(f"rxe:{name}" for name in counted)
    stat = ["perf", "stat", "-a", "-x,", "-e", names, "--", *LOOP]
    rows = [line.split(",") for line in pair.node.run(stat, timeout=120).stderr.splitlines()]
    numbers = {row[2]: row[0] for row in rows if len(row) > 2}
    assert numbers == {"rxe:rxe_tx_packet": "16", "rxe:rxe_rx_done": "16", "rxe:rxe_drop": "0"}
    live = pair.node.run(
        ["perf", "trace", "-a", "-e", "rxe:rxe_tx_packet", "--", *LOOP], timeout=120
    )
    assert live.stderr.count("rxe:rxe_tx_packet(") == 16

    record = ["trace-cmd", "record", "-q", "-o", "/tmp/trace.dat", "-e", "rxe"]
    pair.node.run([*record, *LOOP], timeout=120)
    text = pair.node.run(["trace-cmd", "report", "-i", "/tmp/trace.dat"], timeout=120).stdout
    done = count(named(rxe_trace.parse(text), "rxe_rx_done"), "op")
    assert done == {"RC_RDMA_WRITE_ONLY": 8, "RC_ACKNOWLEDGE": 8}


def test_recipes_for_the_way_to_the_answer(pair: Pair) -> None:
    """The script for perf and the page's synthetic event see the answer to each request."""
    page = PAGE.read_text()
    pair.node.put(SCRIPT, "/tmp/rxeanswered.py")
    record = ["perf", "record", "-qa", "-e", "rxe:rxe_tx_packet,rxe:rxe_rx_done"]
    pair.node.run([*record, "-o", "/tmp/perf.data", "--", *LOOP], timeout=120)
    show = ["perf", "script", "-i", "/tmp/perf.data", "-s", "/tmp/rxeanswered.py"]
    printed = pair.node.run(show, timeout=120).stdout
    waits = [int(ns) for ns in re.findall(r"^\d+ \d+ \d+ (\d+) ns$", printed, re.MULTILINE)]
    assert len(waits) == len(printed.splitlines()) == 8
    assert all(0 < ns < 60 * SECOND for ns in waits)

    commands = re.findall(r"^    # (.*)$", page, re.MULTILINE)
    first = commands.index("cd /sys/kernel/tracing")
    cd, *definitions, show_histogram = commands[first : first + 6]
    triggers = [line for line in definitions if "hist:" in line]
    removal = [line.replace("hist:", "!hist:", 1) for line in reversed(triggers)]
    pair.node.run(["sh", "-ec", "\n".join([cd, *definitions])])
    try:
        pair.node.run(LOOP, timeout=120)
        histogram = pair.node.run(["sh", "-ec", f"{cd}\n{show_histogram}"]).stdout
    finally:
        done = pair.node.run(["sh", "-ec", "\n".join([cd, *removal, "echo > synthetic_events"])])
    assert re.search(r"Hits: 8$", histogram, re.MULTILINE)
    assert (done.stdout, done.stderr) == ("", "")
