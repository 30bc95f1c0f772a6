# SPDX-License-Identifier: GPL-2.0-or-later
"""What the report may claim, and what it must not claim."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

import report_page
from html_tree import Element
from rocelab.accelerators import is_emulated
from rocelab.report import transport_comparison, wording
from rocelab.stats.summary import spread
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

SMALL = {"sizes": (64, 4096), "tests": ("write_lat", "read_lat"), "transports": ("tcp", "rxe-v2")}


def report(run: Synthetic, folder: Path) -> Element:
    return report_page.page(run.write(folder))


def findings_of(page: Element) -> list[str]:
    [section] = page.all("section", id="findings")
    return [item.text for item in section.all("p")]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Element:
    return report(Synthetic(**SMALL), tmp_path_factory.mktemp("tcg"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Element:
    run = Synthetic(**SMALL, accelerator="kvm", repetitions=10)  # type: ignore[arg-type]
    return report(run, tmp_path_factory.mktemp("kvm"))


def test_every_caption_names_the_accelerator(emulated: Element, real: Element) -> None:
    for page, name in ((emulated, "tcg"), (real, "kvm")):
        captions = [caption.text for caption in page.all("figcaption")]
        assert captions
        assert all(f"Accelerator: {name}." in caption for caption in captions)
    assert emulated.text.count("neither real time nor") == 1
    assert "neither real time nor" in emulated.all("section", id="answer")[0].text


def test_a_clock_that_counts_instructions_gives_instructions(tmp_path: Path) -> None:
    """Work is in instructions, waits are in emulated time, and work comes first."""
    run = Synthetic(accelerator="icount", tests=("write_lat",), sizes=(64,), repetitions=1)
    page = report(run, tmp_path)
    assert page.text.count("a clock that counts instructions") == 1
    texts = {element.text for element in page.all("text")}
    assert "instructions per packet" in texts
    assert not [text for text in texts if re.search(r"packet \((emulated )?[nµm]s\)", text)]
    assert not [text for text in texts if re.search(r"(?<!emulated )\b[nµm]s\b", text)]
    anchors = [section.attributes["id"] for section in page.all("section")]
    assert anchors.index("stages") < anchors.index("latency")


def test_an_emulated_time_is_called_so(emulated: Element, real: Element) -> None:
    def bare(page: Element) -> list[str]:
        texts = [element.text for element in page.all("text") + page.all("title")]
        texts += findings_of(page)
        return [text for text in texts if re.search(r"(?<!emulated )\b([nµm]s|[kMG]?B/s)\b", text)]

    assert bare(emulated) == []
    assert bare(real) != []


def test_no_share_of_time_when_emulated(emulated: Element, real: Element) -> None:
    assert not [text for text in findings_of(emulated) if "%" in text or "largest stage" in text]
    assert [text for text in findings_of(real) if re.search(r"cover \d.*\(\d+%\)", text)]
    assert [text for text in findings_of(real) if "largest stage" in text]
    for figure in emulated.all("div", class_="card"):
        if figure.attributes["id"].startswith(("latency", "stages", "coverage")):
            assert "%" not in "".join(text.text for text in figure.all("text"))


def test_half_and_whole_round_trips_never_share_a_figure(emulated: Element) -> None:
    figures = {
        figure.attributes["id"]: [heading.text for heading in figure.all("h4")]
        for figure in emulated.all("div", class_="card")
        if figure.attributes["id"].startswith("latency")
    }
    assert figures == {
        "latency-one-way-half-rtt-tcg": ["perftest write_lat"],
        "latency-round-trip-tcg": ["perftest read_lat"],
    }
    [half] = emulated.all("div", id="latency-one-way-half-rtt-tcg")
    assert {row["benchmark"] for row in half.all("table")[0].table()} == {"perftest write_lat"}


def test_kinds_stay_apart_even_within_one_benchmark(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,))
    run.write(tmp_path)
    path = tmp_path / "results.parquet"
    frame = pl.read_parquet(path)
    odd = (pl.col("transport") == "tcp") & (pl.col("metric") == "latency.mean")
    frame.with_columns(
        kind=pl.when(odd).then(pl.lit("round_trip")).otherwise(pl.col("kind"))
    ).write_parquet(path)
    page = report_page.page(tmp_path, "findings", "latency")
    [half] = page.all("div", id="latency-one-way-half-rtt-tcg")
    [whole] = page.all("div", id="latency-round-trip-tcg")
    assert {row["transport"] for row in half.all("table")[0].table()} == {"rxe-v2"}
    assert {row["transport"] for row in whole.all("table")[0].table()} == {"tcp"}
    assert not [text for text in findings_of(page) if "against" in text]


@pytest.mark.slow
def test_accelerators_stay_apart(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,))
    run.write(tmp_path)
    path = tmp_path / "results.parquet"
    frame = pl.read_parquet(path)
    real = pl.when(pl.col("transport") == "tcp").then(pl.lit("kvm")).otherwise("accelerator")
    frame.with_columns(accelerator=real).write_parquet(path)
    page = report_page.page(tmp_path)
    for figure in page.all("div", class_="card"):
        named = {name for name in ("kvm", "tcg") if f"Accelerator: {name}" in figure.text}
        assert named == {figure.attributes["id"].rpartition("-")[2]}
        transports = {"kvm": "tcp", "tcg": "rxe-v2"}
        for row in figure.all("table")[0].table():
            assert row.get("transport", transports[min(named)]) == transports[min(named)]
    assert "more than one accelerator" in page.text
    assert not [text for text in findings_of(page) if "against" in text]


def test_an_unknown_accelerator_is_taken_for_emulation() -> None:
    assert is_emulated("quantum")
    assert "not real time" in wording.accelerator_caption("quantum")


def test_fewer_than_six_repetitions_give_no_interval(emulated: Element, real: Element) -> None:
    [few] = emulated.all("div", id="latency-one-way-half-rtt-tcg")
    assert "There is no confidence interval" in few.text
    assert {row["95 % CI"] for row in few.all("table")[0].table()} == {"none"}
    [many] = real.all("div", id="latency-one-way-half-rtt-kvm")
    assert "There is no confidence interval" not in many.text
    assert "confidence interval of the median" in many.text
    assert "none" not in {row["95 % CI"] for row in many.all("table")[0].table()}


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12], "lower"),
        ([7, 8, 9, 10, 11, 12], [1, 2, 3, 4, 5, 6], "higher"),
        ([1, 2, 3, 4, 5, 8], [7, 8, 9, 10, 11, 12], "undecided"),
        # ten values: the interval leaves out the smallest and the largest
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 99], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19], "lower"),
        ([1, 2], [3, 4], "lower"),
        ([1, 3], [3, 4], "undecided"),
        ([1], [2], "undecided"),
    ],
)
def test_a_difference_needs_evidence(one: list[float], other: list[float], verdict: str) -> None:
    assert transport_comparison.compare(spread(one), spread(other)) == verdict


def test_every_comparison_is_in_a_table(real: Element) -> None:
    [table] = real.all("section", id="findings")[0].all("table")
    rows = {row["size"]: row for row in table.table()}
    assert len(rows) == 2
    assert {row["verdict"] for row in rows.values()} == {"higher"}
    [figure] = real.all("div", id="latency-one-way-half-rtt-kvm")
    for line in figure.all("table")[0].table():
        side = "median" if line["transport"] == "rxe-v2" else "median of the other"
        assert float(rows[line["size"]][side].split()[0]) == pytest.approx(
            float(line["median"]), rel=0.005
        )


@pytest.mark.slow
def test_many_findings_are_cut_short(tmp_path: Path) -> None:
    run = Synthetic(
        tests=("write_lat", "send_lat", "write_bw"),
        transports=("tcp", "rxe-v1", "rxe-v2", "hw-v2", "ib"),
        sizes=(64,),
        accelerator="kvm",
    )
    page = report(run, tmp_path)
    said = [text for text in findings_of(page) if "mean latency was" in text]
    assert len(said) == 4
    assert "4 more of this kind are in the tables and figures below." in findings_of(page)
    [table] = page.all("section", id="findings")[0].all("table")
    assert len(table.table()) == 3 * 4


@pytest.mark.parametrize(("accelerator", "is_named"), [("icount", False), ("lockstep", True)])
def test_times_that_follow_the_host_are_no_finding(
    tmp_path: Path, accelerator: str, is_named: bool
) -> None:
    page = report(Synthetic(tests=("write_lat",), accelerator=accelerator), tmp_path)
    said = [text for text in findings_of(page) if "mean latency" in text]
    assert bool(said) == is_named, said
    assert any("Encapsulation" in text for text in findings_of(page))


@pytest.mark.slow
def test_overlapping_repetitions_are_no_finding(tmp_path: Path) -> None:
    run = Synthetic(tests=("write_lat",), sizes=(64,), repetitions=6, accelerator="kvm")
    run.write(tmp_path)
    path = tmp_path / "results.parquet"
    same = pl.col("metric") == "latency.mean"
    pl.read_parquet(path).with_columns(
        value=pl.when(same).then(100.0 + pl.col("repetition")).otherwise(pl.col("value"))
    ).write_parquet(path)
    page = report_page.page(tmp_path, "findings")
    [said] = [text for text in findings_of(page) if "mean latency" in text and "tcp" in text]
    assert "no evidence of a difference between rxe-v2 and tcp" in said
    assert "confidence intervals overlap" in said


def test_a_single_repetition_compares_nothing(tmp_path: Path) -> None:
    page = report(Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1), tmp_path)
    assert not [text for text in findings_of(page) if "tcp" in text and "latency was" in text]


def test_a_lossy_probe_is_on_record(tmp_path: Path) -> None:
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    path = tmp_path / "results.parquet"
    lossy = (pl.col("metric") == "probe.lost") & (pl.col("node") == "n2")
    pl.read_parquet(path).with_columns(
        value=pl.when(lossy).then(17.0).otherwise(pl.col("value"))
    ).write_parquet(path)
    page = report_page.page(tmp_path, "stages")
    rows = page.all("section", id="stages")[0].all("table")[-1].table()
    assert {row["node"]: row["records lost"] for row in rows} == {"n1": "0", "n2": "17"}


def test_unequal_links_and_lost_frames_are_warned_of(tmp_path: Path) -> None:
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    meta = json.loads((tmp_path / "run.json").read_text())
    for name, speed in (("n1", "100000 Mbit/s"), ("n2", "25000 Mbit/s")):
        meta["nodes"][name]["settings"] = {"link speed": speed, "governor": "performance"}
    (tmp_path / "run.json").write_text(json.dumps(meta))
    path = min(tmp_path.glob("cells/*rxe-v2*/cell.json"))
    cell = json.loads(path.read_text())
    cell["steps"][0]["capture"] = {"snaplen": 65535, "whole_frames": True, "lost": 3}
    path.write_text(json.dumps(cell))
    page = report_page.page(tmp_path)
    assert "not equally fast (n1: 100000 Mbit/s and n2: 25000 Mbit/s)" in page.text
    assert f"than they were written ({path.parent.name}: 3)" in page.text
    assert "The nodes differ in: link speed." in page.text


def test_packets_dropped_before_the_link_are_warned_of(tmp_path: Path) -> None:
    """Unless the plan drops them."""
    Synthetic(tests=("write_lat",), sizes=(64,), repetitions=1).write(tmp_path)
    path = min(tmp_path.glob("cells/*rxe-v2*/cell.json"))
    cell = json.loads(path.read_text())
    cell["steps"][0]["counters"]["n1"]["link"] = {"dropped": 4}
    path.write_text(json.dumps(cell))
    warning = f"dropped packets before the link ({path.parent.name}: 4)"
    assert warning in report_page.page(tmp_path, "proof").text
    meta = json.loads((tmp_path / "run.json").read_text())
    meta["plan"]["testbed"] = {"link": {"loss_ppm": 100}}
    (tmp_path / "run.json").write_text(json.dumps(meta))
    assert warning not in report_page.page(tmp_path, "proof").text


@pytest.mark.slow
def test_a_capture_on_the_machine_itself_is_not_called_outside(tmp_path: Path) -> None:
    """Provider veth has no outside witness."""
    folder = Synthetic(**SMALL).write(tmp_path)  # type: ignore[arg-type]
    meta = json.loads((folder / "run.json").read_text())
    meta["testbed"] = {"provider": "veth"}
    (folder / "run.json").write_text(json.dumps(meta))
    [section] = report_page.page(folder, "proof").all("section", id="proof")
    assert "on the machine that hosts both nodes" in section.text
    assert "outside the nodes" not in section.text
