# SPDX-License-Identifier: GPL-2.0-or-later
"""rxestat's metrics: right numbers, for a real Prometheus, and for each panel of the dashboard."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import traffic
from prometheus import prometheus, promtool_check
from rocelab.testbed.node import Node
from rocelab.testbed.node.prepare_node import DEVICE
from rocelab.testbed.qemu.qemu_testbed import QemuTestbed

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "ebpf/grafana/rxe.json").read_text())
OPENMETRICS = "application/openmetrics-text"
MESSAGES = 150
SHORT_PACKETS = 5


def scrape(node: Node, accept: str = "*/*") -> tuple[str, str]:
    """The metrics, and their media type."""
    url = "http://127.0.0.1:9491/metrics"
    command = ["curl", "-sSf", "-H", f"Accept: {accept}", "-w", "\n%{content_type}", url]
    text, _, media_type = node.run(command).stdout.rpartition("\n")
    return text, media_type


def fetch_status(node: Node, *words: str) -> str:
    """The status of another request."""
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *words]
    return node.run(command, check=False).stdout


def expressions() -> list[str]:
    """The queries of the dashboard, as Grafana asks them with all of everything."""
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    chosen = {variable["name"]: variable.get("allValue") for variable in _variables()}
    chosen["__rate_interval"] = "5m"
    return [re.sub(r"\$(\w+)", lambda name: str(chosen[name[1]]), text) for text in queries]


def _variables() -> list[dict[str, Any]]:
    variables: list[dict[str, Any]] = DASHBOARD["templating"]["list"]
    return variables


def test_metrics_of_known_traffic(testbed: QemuTestbed, tmp_path: Path) -> None:
    """Prometheus adds up what was sent, stage by stage, as the document at the end has it."""
    n1, n2 = testbed.nodes
    process = n1.start(["rxestat", "--json", "--openmetrics", ":9491"])
    try:
        process.wait_for_line("rxestat: ready", timeout=120)
        traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=10)
        before, media_type = scrape(n1, OPENMETRICS)
        assert media_type.startswith(OPENMETRICS)
        assert before.endswith("# EOF\n")
        traffic.perftest("ib_send_lat", n1, n2, size=64, iterations=MESSAGES)
        runt = f"for i in $(seq {SHORT_PACKETS}); do echo -n runt > /dev/udp/$1/4791; done"
        n2.run(["bash", "-c", runt, "bash", n1.link.ipv4])
        dropped = f'reason="short".* {SHORT_PACKETS}$'
        until = f"until curl -sSf http://127.0.0.1:9491/metrics | grep -q '{dropped}'; do :; done"
        n1.run(["timeout", "120", "sh", "-c", until], timeout=150)
        after, _ = scrape(n1, OPENMETRICS)
        plain, plain_type = scrape(n1)
        assert plain_type == "text/plain; version=0.0.4; charset=utf-8"
        for status, words in {
            "404": ["http://127.0.0.1:9491/other"],
            "405": ["-d", "x", "http://127.0.0.1:9491/metrics"],
            "200": ["-I", "http://127.0.0.1:9491/metrics"],
            "000": [f"http://{n1.link.ipv4}:9491/metrics"],  # for this machine only
        }.items():
            assert fetch_status(n1, *words) == status, words
        process.interrupt()
        done = process.wait(timeout=60)
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()
    promtool_check(plain)
    document = json.loads(done.stdout)
    with prometheus(tmp_path) as server:
        server.show(before, media_type)
        server.wait('up{job="rxe"} == 1')
        server.wait(f'rxe_packets_total{{event="sent",device="{DEVICE}"}}')
        assert OPENMETRICS in server.target.accepted[0]
        sends = f'rxe_packets_total{{event="sent",device="{DEVICE}",opcode="RC_SEND"}}'
        assert server.value(sends) == 10
        server.show(after, media_type)
        server.wait(f"{sends} == {10 + MESSAGES}")
        assert server.value('sum(rxe_packets_dropped_total{reason="short"})') == SHORT_PACKETS
        assert server.value(f'rxe_packets_dropped_total{{reason="icrc",device="{DEVICE}"}}') == 0
        assert server.value('rxe_queue_pairs{type="GSI",state="RTS"}') == 1
        assert server.value("rxe_probe_packets_lost_total{reason='nested'}") == 0
        assert server.query("rxe_info")[0]["metric"]["clock"] == "emulated"
        expected: Counter[tuple[str, str]] = Counter()
        for row in document["rows"]:
            expected[row["dir"], row["stage"]] += row["count"]
        for (direction, stage), count in expected.items():
            chosen = f'direction="{direction}",stage="{stage}"'
            name = "rxe_stage_duration_seconds"
            assert server.value(f"sum({name}_count{{{chosen}}})") == count, chosen
            assert server.value(f'sum({name}_bucket{{{chosen},le="+Inf"}})') == count
            rows = [r for r in document["rows"] if (r["dir"], r["stage"]) == (direction, stage)]
            edge = 2**14
            below = sum(n for r in rows for upper, n in r["buckets"] if upper <= edge)
            assert server.value(f'sum({name}_bucket{{{chosen},le="1.6384e-05"}})') == below
            nanoseconds = sum(row["sum_ns"] for row in rows)
            assert round(server.value(f"sum({name}_sum{{{chosen}}})") * 1e9) == nanoseconds
        server.wait("rate(rxe_packets_total[5m])")
        empty = [expression for expression in expressions() if not server.query(expression)]
        assert empty == []
    assert [row for row in document["losses"] if row["event"] == "drop"] == [
        {"dev": DEVICE, "event": "drop", "reason": "short", "count": SHORT_PACKETS}
    ]
