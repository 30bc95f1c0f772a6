# SPDX-License-Identifier: GPL-2.0-or-later
"""A local user changes mapped work queues while the driver uses them: the kernel log stays clean.

Two processors, since the changes race with the driver. A packet socket is open on the link, because
it follows what packets claim about their headers. In the environment, ROCELAB_HOSTILE_SEED selects
other changes (their timing differs in every run), ROCELAB_HOSTILE_REQUESTS and
ROCELAB_HOSTILE_SECONDS how many.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forged_peer import until
from node_program import compile_program
from rocelab.measure import hostile_frames
from rocelab.measure.hostile_frames import PLACE, mac, messages, templates
from rocelab.testbed.node.prepare_node import unload
from veth_pair import Pair, veth_pair
from vmlab import LINE, PATIENCE, boot_alone, healthy

SOURCE = Path(__file__).parent / "verbs_hostile.c"
WINDOW = SOURCE.with_name("verbs_window.c")
WINDOW_BOUNDS = SOURCE.with_name("verbs_window_bounds.c")
BIND_RACE = SOURCE.with_name("verbs_bind_race.c")
ODP = SOURCE.with_name("verbs_odp.c")
CONTROL = SOURCE.with_name("verbs_control.c")
GROUP_RACE = SOURCE.with_name("verbs_group_race.c")
MODIFY_RACE = SOURCE.with_name("verbs_modify_race.c")
DISABLED_TASK = SOURCE.with_name("verbs_disabled_task.c")
NUMBERS = "/tmp/verbs_target.numbers"
TARGETS = "/tmp/verbs_target.txt"
SEED = int(os.environ.get("ROCELAB_HOSTILE_SEED", "20261122"))
REQUESTS = int(os.environ.get("ROCELAB_HOSTILE_REQUESTS", "20000"))
SECONDS = int(os.environ.get("ROCELAB_HOSTILE_SECONDS", "15"))
"""Limits for one kind of change; the first one reached applies. Frames: REQUESTS alone."""
MIN_REQUESTS = 500
"""However slow the kernel is."""
TIMES, FEW = 100, 6
"""How often what races must have succeeded, however slow the kernel is."""
BOUND = 300 * PATIENCE
"""Seconds for that."""
CHANGES = ("av", "wqe", "recv", "ring", "all")
_LISTEN = ("tcpdump", "-i", "veth_a", "-p", "-w", "/dev/null")
ORDINARY = (("rc", "write"), ("rc", "read"), ("srq", "send"), ("ud", "send"))


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two devices on one machine, with a listening socket; at the end all can be removed."""
    with boot_alone(name="hostile", vcpus=2) as machine, healthy([machine], "hostile user"):
        with veth_pair(machine, roce_v1=True) as pair:
            listener = machine.start(_LISTEN)
            try:
                listener.wait_for_line("listening on", timeout=60 * PATIENCE)
                yield pair
            finally:
                listener.kill()
        unload(machine)


@pytest.mark.parametrize("changes", CHANGES)
def test_changes_under_the_driver(
    pair: Pair, changes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Requests complete, are refused or fail; other traffic keeps working."""
    program = compile_program(pair.node, SOURCE, "-libverbs", "-pthread")
    with healthy([pair.node], changes):
        limits = map(str, (REQUESTS, SECONDS, SEED, MIN_REQUESTS))
        done = pair.node.run([program, "rxe_a", "rxe_b", changes, *limits], timeout=SECONDS + BOUND)
        counts = re.fullmatch(r"requests=(\d+) resets=(\d+)\n", done.stdout)
        assert counts, done.stdout
        with capsys.disabled():
            print(f"\n{changes}: {done.stdout.strip()}")
        assert int(counts[1]) >= MIN_REQUESTS
        for transport, operation in ORDINARY:
            pair.loop(transport, operation, 1000, 4)


def test_windows(pair: Pair) -> None:
    """A memory window without a binding is not invalidated; one outlives its queue pair."""
    program = compile_program(pair.node, WINDOW, "-libverbs")
    with healthy([pair.node], "windows"):
        done = pair.node.run([program, "rxe_a", "rxe_b"], timeout=120 * PATIENCE)
        assert done.stdout == "ok\n"


def test_what_a_window_allows(pair: Pair) -> None:
    """A window gives access to its part of a region of its own protection domain only."""
    program = compile_program(pair.node, WINDOW_BOUNDS, "-libverbs")
    with healthy([pair.node], "bounds of windows"):
        done = pair.node.run([program, "rxe_a", "rxe_b"], timeout=120 * PATIENCE)
        assert done.stdout == "done\n"


def race(
    pair: Pair,
    capsys: pytest.CaptureFixture[str],
    source: Path,
    pattern: str,
    *least: int,
) -> tuple[int, ...]:
    """Run a program whose threads race for SECONDS, and until all has happened so many times.

    Returns the numbers in what it prints.
    """
    program = compile_program(pair.node, source, "-libverbs", "-pthread")
    with healthy([pair.node], source.stem):
        done = pair.node.run(
            [program, "rxe_a", str(SECONDS), *map(str, least)], timeout=SECONDS + BOUND
        )
    with capsys.disabled():
        print(f"\n{source.stem}: {done.stdout.strip()}")
    counts = re.fullmatch(pattern + r"\n", done.stdout)
    assert counts, done.stdout
    return tuple(map(int, counts.groups()))


def test_bind_while_deregistered(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """A memory window is bound to a region, or the region is deregistered, never both."""
    numbers = race(pair, capsys, BIND_RACE, r"bound=(\d+) deregistered=(\d+)", FEW)
    # each came first several times, so that they met
    assert min(numbers) >= FEW


@pytest.mark.skipif(LINE in ("6.1", "6.12"), reason="the driver has no on-demand paging")
def test_on_demand_paging(pair: Pair) -> None:
    """A region with on-demand paging may have any iova; other regions are not prefetched."""
    program = compile_program(pair.node, ODP, "-libverbs")
    with healthy([pair.node], "on-demand paging"):
        done = pair.node.run([program, "rxe_a", "rxe_b"], timeout=120 * PATIENCE)
        assert done.stdout == "done\n"


def test_a_group_begins_and_ends(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Who is attached to a multicast group while its last member leaves can leave it, too."""
    attached, stuck = race(pair, capsys, GROUP_RACE, r"attached=(\d+) stuck=(\d+)", TIMES)
    assert attached >= TIMES
    assert stuck == 0


@pytest.mark.skipif(LINE == "6.1", reason="the driver permits no such change")
def test_messages_while_a_task_is_disabled(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """A message that comes during a change of its queue pair arrives; after a reset, none stays."""
    arrived, late, reset, stuck = race(
        *(pair, capsys, DISABLED_TASK),
        r"arrived=(\d+) late=(\d+) reset=(\d+) stuck=(\d+)",
        *(TIMES, FEW),
    )
    assert (late, stuck) == (0, 0)
    assert arrived >= TIMES
    assert reset >= FEW


def test_threads_modify_one_queue_pair(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """A queue pair that several threads modify at once is modified by one after the other."""
    # 6.1 refuses the change
    least = (0 if LINE == "6.1" else TIMES, TIMES, TIMES)
    counted = race(
        *(pair, capsys, MODIFY_RACE, r"changed=(\d+) reset=(\d+) connected=(\d+)"),
        *least[:2],
    )
    assert all(map(operator.ge, counted, least)), counted
    assert bool(counted[0]) == bool(least[0])


NOT_ON = {
    "6.1": {"register_odp", "advise", "reregister"},
    "6.12": {"register_odp", "advise"},
}
"""Calls that a line's driver refuses always."""


def test_calls_in_any_order(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Objects are made, changed and ended while there is traffic: each kind of call succeeds."""
    program = compile_program(pair.node, CONTROL, "-libverbs", "-pthread")
    refused = NOT_ON.get(LINE, set())
    with healthy([pair.node], "calls"):
        done = pair.node.run(
            [program, "rxe_a", str(SECONDS), str(SEED), ",".join(refused)],
            timeout=SECONDS + BOUND,
        )
        with capsys.disabled():
            print(f"\ncalls: {done.stdout.strip()}")
        made = {kind: int(n) for kind, n in re.findall(r"(\w+)=(\d+)/\d+", done.stdout)}
        assert {kind for kind, n in made.items() if not n} == refused
        for transport, operation in ORDINARY:
            pair.loop(transport, operation, 1000, 4)


_LINKS = """
make() {
    ip link add veth_c type veth peer name veth_d
    up
}
up() {
    ip addr replace 10.46.0.1/24 dev veth_c
    ip link set veth_c up
    ip link set veth_d up
}
has_device() { [ -e /sys/class/infiniband/rxe_c ]; }
sent() { cat /sys/class/infiniband/rxe_c/ports/1/hw_counters/sent_pkts; }
set -e
make
ip netns add away
n=0
end=$(($(date +%s) + $1))
while [ $n -lt 3 ] || [ "$(date +%s)" -lt $end ]; do
    rdma link add rxe_c type rxe netdev veth_c
    "$2" rxe_c 3600 $(($3 + n)) >/tmp/links.log 2>&1 & user=$!
    until [ "$(sent)" -gt 2 ]; do kill -0 $user || { cat /tmp/links.log >&2; exit 1; }; done
    ip link set veth_c down
    ip link set veth_c up
    ! rdma link add rxe_c type rxe netdev veth_d 2>/dev/null
    case $((n % 3)) in
    0) rdma link delete rxe_c ;;
    1) ip link set veth_c netns away
       ip -n away link set veth_c netns $$
       up ;;
    2) ip link delete veth_c
       make ;;
    esac & change=$!
    kill $user # ends a little later
    wait $change
    wait $user || :
    while has_device; do :; done
    n=$((n + 1))
done
ip link delete veth_c
ip netns delete away
echo "rounds=$n"
"""


def test_links_come_and_go(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """A device ends under traffic: deleted, its netdev moved to a namespace, or deleted, too."""
    program = compile_program(pair.node, CONTROL, "-libverbs", "-pthread")
    with healthy([pair.node], "links"):
        words = ["sh", "-c", _LINKS, "sh", str(SECONDS), program, str(SEED)]
        done = pair.node.run(words, timeout=SECONDS + BOUND)
        with capsys.disabled():
            print(f"\nlinks: {done.stdout.strip()}")
        assert re.fullmatch(r"rounds=\d+\n", done.stdout)


def test_frames_while_queue_pairs_change(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutated frames come for queue pairs that are made, moved through their states, destroyed."""
    node = pair.node
    macs = [mac(node.run(["cat", f"/sys/class/net/veth_{end}/address"]).stdout.strip())
            for end in "ab"]  # fmt: skip
    with healthy([node], "frames"), hostile_frames.install(node, LINE) as (target, fuzz):
        argv = ["sh", "-c", "exec $0 $1 $2 $3 >$4"]
        process = node.start([*argv, target, "rxe_a", "10.45.0.2", NUMBERS, TARGETS])
        try:
            until(node, f"grep -qs ready {TARGETS}")
            keys, *listing = node.run(["cat", TARGETS]).stdout.splitlines()
            va, rkey = map(int, keys.split())
            frames = []
            for version, kind in (("v1", "v1"), ("v2", "v2_ipv4")):
                places: dict[str, list[int]] = {"rc": [], "uc": [], "ud": []}
                for place, line in enumerate(listing[:-1]):
                    if line.split()[0] == version:
                        places[line.split()[1]].append(PLACE + place)
                filled = messages(places, va, rkey)
                frames += templates(kind, (macs[0], "10.45.0.1"), (macs[1], "10.45.0.2"), filled)
            assert len(frames) <= 256
            before, first = pair.counters(), node.run(["cksum", NUMBERS]).stdout
            for rounds in range(1, FEW + 1):
                node.run(
                    [fuzz, "veth_b", str(SEED + rounds), str(REQUESTS), NUMBERS],
                    stdin="".join(frame.hex() + "\n" for frame in frames),
                    timeout=600 * PATIENCE,
                )
                moved = {name: value - before[name] for name, value in pair.counters().items()}
                # some were for queue pairs that took them, and other ones came
                took = moved["rcvd_pkts"] > REQUESTS // 50
                if took and node.run(["cksum", NUMBERS]).stdout != first:
                    break
            process.interrupt()
            process.wait(timeout=120 * PATIENCE)
            made = int(node.run(["cat", TARGETS]).stdout.split("made=")[1])
        finally:
            process.kill()
        with capsys.disabled():
            print(f"\nframes: {rounds * REQUESTS} sent, {made} queue pairs, {moved}")
        assert made > hostile_frames.TARGETS
        assert took, moved
        pair.loop("rc", "write", 1000, 4)
