# SPDX-License-Identifier: GPL-2.0-or-later
"""Every number of the report, recomputed from results.parquet by other means."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import report_page
from html_tree import Element
from rocelab import units
from rocelab.stage_table import RX, STAGES, TX
from synthetic_run import Synthetic

RUN = Synthetic(
    transports=("tcp", "rxe-v2"), tests=("write_lat", "write_bw"), sizes=(64, 4096), repetitions=7
)


@pytest.fixture(scope="module")
def page(folder: Path) -> Element:
    return report_page.page(folder)


def table(page: Element, slug: str) -> list[dict[str, str]]:
    [figure] = page.all("div", id=slug)
    return figure.all("table")[0].table()


def values(results: pl.DataFrame, **where: object) -> list[float]:
    return results.filter(**where)["value"].to_list()


def shown(value: float) -> str:
    return units.number(value, 4)


@pytest.mark.parametrize(
    ("slug", "metric", "divisor"),
    [
        ("latency-one-way-half-rtt-tcg", "latency.mean", 1e3),
        ("bandwidth-one-way-tcg", "bandwidth", 1e6),
    ],
)
def test_lines(
    page: Element, results: pl.DataFrame, slug: str, metric: str, divisor: float
) -> None:
    rows = table(page, slug)
    assert len(rows) == 4  # two transports at two sizes
    for row in rows:
        size = {units.size(64): 64, units.size(4096): 4096}[row["size"]]
        [test] = {row["benchmark"].removeprefix("perftest ")}
        measured = sorted(
            values(results, metric=metric, test=test, transport=row["transport"], size=size)
        )
        frame = pl.Series(measured) / divisor
        assert row["repetitions"] == "7"
        assert row["median"] == shown(frame.median())  # type: ignore[arg-type]
        assert row["mean"] == shown(frame.mean())  # type: ignore[arg-type]
        assert row["st. dev."] == shown(frame.std())  # type: ignore[arg-type]
        assert row["smallest"] == shown(measured[0] / divisor)
        assert row["largest"] == shown(measured[-1] / divisor)
        # of seven values, only the whole range covers the median with 95 % or more
        assert (
            row["95 % CI"] == f"{shown(measured[0] / divisor)} to {shown(measured[-1] / divisor)}"
        )
        if metric == "bandwidth":
            rate = pl.Series(
                values(results, metric="message_rate", transport=row["transport"], size=size)
            )
            middle = rate.median()
            assert isinstance(middle, float)
            assert row["messages"] == f"{shown(middle / 1e3)} emulated k/s"
        if metric == "latency.mean" and row["transport"] == "rxe-v2":
            p99 = pl.Series(values(results, metric="latency.p99", size=size)) / divisor
            assert row["p99 of messages"] == shown(p99.median())  # type: ignore[arg-type]


STAGES_OF = "stages-perftest-write-lat-packets-tcg"


def test_stages(page: Element, results: pl.DataFrame) -> None:
    [figure] = page.all("div", id=STAGES_OF)
    tables = dict(zip(("tx", "rx"), figure.all("table"), strict=True))
    for direction, names in (("tx", TX), ("rx", RX)):
        rows = tables[direction].table()
        assert len(rows) == 2 * 2  # nodes, sizes
        for row in rows:
            node, verb, *packets = row["packets"].split()
            assert verb == {"tx": "sends", "rx": "receives"}[direction]
            where = {
                "test": "write_lat",
                "transport": row["transport"],
                "kind": "_".join(packets),
                "node": node,
                "size": {units.size(64): 64, units.size(4096): 4096}[row["size"]],
            }
            for name in names:
                sums = values(results, metric=f"stage.{direction}.{name}.sum", **where)
                # a bar is made of 1000 packets; only some of them pass through cqe
                assert row[name] == shown(sum(sums) / 7 / 1000 / 1e3)


def test_a_stage_says_more_on_hover(page: Element, results: pl.DataFrame) -> None:
    """How it spreads over repetitions and packets, and how many packets these were."""
    [figure] = page.all("div", id=STAGES_OF)
    where = {
        "metric": "stage.tx.icrc.{}", "test": "write_lat", "transport": "rxe-v2",
        "kind": "RDMA_WRITE", "node": "n1", "size": 64,
    }  # fmt: skip

    def values_of(figure: str) -> list[float]:
        return values(results, **where | {"metric": f"stage.tx.icrc.{figure}"})

    sums, p99 = values_of("sum"), pl.Series(values_of("p99")).median()
    assert isinstance(p99, float)
    [panel] = [
        p for p in figure.all("div", class_="panel") if p.all("h4")[0].text.startswith("n1 s")
    ]
    label = f"rxe-v2, {units.size(64)}, icrc: ".replace(units.NARROW_SPACE, units.SPACE)
    [said] = [t.text for t in panel.all("title") if t.text.startswith(label)]
    said = said.removeprefix(label)
    mean, low, high = (units.number(v / 1e6) for v in (sum(sums) / 7, min(sums), max(sums)))
    assert said.startswith(f"{mean} emulated µs, {low} to {high} over the repetitions; p50 ")
    assert said.endswith(f"p99 {units.number(p99 / 1e3)}; {int(sum(values_of('count'))):,} packets")


def test_columns_beside_the_bars(page: Element, results: pl.DataFrame) -> None:
    [figure] = page.all("div", id=STAGES_OF)
    panels = {p.all("h4")[0].text: p for p in figure.all("div", class_="panel")}
    assert list(panels) == [
        "n1 sends RDMA WRITE",
        "n2 receives RDMA WRITE",
        "n2 sends RDMA WRITE",
        "n1 receives RDMA WRITE",
    ]
    for title, panel in panels.items():
        node, direction = title[:2], "tx" if "sends" in title else "rx"
        drawn = {element.text for element in panel.all("text")}
        for size in (64, 4096):
            where = {"test": "write_lat", "kind": "RDMA_WRITE", "node": node, "size": size}
            work = [s for s in TX + RX if s not in {"queue", "reply"}]
            parts = [
                sum(values(results, metric=f"stage.{direction}.{stage}.sum", **where)) / 7000
                for stage in dict.fromkeys(work)
            ]
            assert units.number(sum(parts) / 1e3) in drawn
            name = "encapsulation" if direction == "tx" else "decapsulation"
            capsule = values(results, metric=f"{name}.mean", **where)
            assert units.number(sum(capsule) / 7 / 1e3) in drawn


def test_bars_are_as_long_as_their_numbers(page: Element) -> None:
    [figure] = page.all("div", id=STAGES_OF)
    lengths: list[tuple[float, float]] = []
    for panel in figure.all("div", class_="panel"):
        for bar in panel.all("rect"):
            [label] = [title.text for title in bar.all("title")] or [""]
            if label:
                width = float(bar.attributes["width"])
                lengths.append((width, float(label.split(": ")[1].split()[0].replace(",", ""))))
    assert len(lengths) == 2 * 2 * (len(STAGES) - 2)
    widest = max(lengths)
    scale = widest[0] / widest[1]
    for width, value in lengths:
        assert width == pytest.approx(value * scale, abs=0.3)


def test_coverage(page: Element, results: pl.DataFrame) -> None:
    rows = table(page, "coverage-one-way-half-rtt-tcg")
    assert len(rows) == 6
    means: dict[tuple[str, str], float] = {}
    for row in rows:
        size = {units.size(64): 64, units.size(4096): 4096}[row["size"]]
        measured = values(results, metric=f"coverage.{row['part']}", size=size)
        means[row["size"], row["part"]] = sum(measured) / len(measured)
        assert row["mean"] == shown(sum(measured) / len(measured) / 1e3)
    for name in (units.size(64), units.size(4096)):
        assert means[name, "total"] == pytest.approx(means[name, "stages"] + means[name, "outside"])


def test_wire(page: Element, results: pl.DataFrame) -> None:
    rows = table(page, "wire-tcg")
    assert len(rows) == 8
    for row in rows:
        size = {units.size(64): 64, units.size(4096): 4096}[row["size"]]
        where = {
            "test": row["benchmark"].removeprefix("perftest "),
            "transport": row["transport"],
            "size": size,
        }
        [header] = set(values(results, metric="wire.header_bytes", **where))
        payload = sum(values(results, metric="wire.payload_bytes", **where))
        frames = sum(values(results, metric="wire.data_frames", **where))
        assert row["header bytes"] == shown(header)
        assert row["message bytes"] == shown(payload / frames)
        assert row["efficiency"] == f"{payload / (payload + frames * header):.2%}"


def test_proof(page: Element) -> None:
    [section] = page.all("section", id="proof")
    rows = {row["cell"]: row for row in section.all("table")[0].table()}
    assert len(rows) == 28
    rxe = rows["perftest-write_lat.rxe-v2.r01"]
    assert (rxe["verdict"], rxe["checks passed"]) == ("proven", "2 of 2")
    packets = units.integer(5000)  # 2500 at each of two sizes, from both nodes
    assert [rxe[name] for name in ("sent_pkts", "rcvd_pkts", "RoCE v2 frames")] == [packets] * 3
    tcp = rows["perftest-write_lat.tcp.r07"]
    assert [tcp[name] for name in ("sent_pkts", "rcvd_pkts", "RoCE v2 frames")] == ["0"] * 3
    assert tcp["TCP frames"] == packets


def test_the_probes_own_account(page: Element) -> None:
    [section] = page.all("section", id="stages")
    rows = section.all("table")[-1].table()
    assert {row["records"] for row in rows} == {units.integer(3 * 1003 * 2 * 7)}
    assert {row["switched out"] for row in rows} == {units.integer(3 * 3 * 2 * 7)}
    assert {row["records lost"] for row in rows} == {"0"}
    assert {row["one clock reading"] for row in rows} == {"44 emulated ns"}


def test_the_testbed_is_described(page: Element) -> None:
    [section] = page.all("section", id="where")
    assert {"fact": "qemu", "value": "7.2.22"} in section.all("table")[2].table()


def test_versions_side_by_side(tmp_path: Path, page: Element) -> None:
    assert "skips" not in page.all("section", id="stages")[0].text  # this run has no v1
    run = Synthetic(transports=("rxe-v1", "rxe-v2"), tests=("write_lat",), sizes=(64,))
    other = report_page.page(run.write(tmp_path), "stages")
    [section] = other.all("section", id="stages")
    assert "routing and netfilter, which v1 skips" in section.text
    results = pl.read_parquet(tmp_path / "results.parquet")
    [figure] = other.all("div", id=STAGES_OF)
    rows = {(row["packets"], row["transport"]): row for row in figure.all("table")[0].table()}
    for transport in run.transports:
        means = values(
            results, metric="encapsulation.mean", kind="RDMA_WRITE", node="n2", transport=transport
        )
        shown_one = rows["n2 sends RDMA WRITE", transport]["encapsulation"]
        assert shown_one == shown(sum(means) / len(means) / 1e3)
