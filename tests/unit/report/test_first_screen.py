# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of the demo as a newcomer meets it: short, an answer first, nothing said twice."""

from __future__ import annotations

import colorsys
import itertools
import re
import tarfile
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import report_page
from html_tree import Element
from rocelab import stage_table, units
from rocelab.plans.catalog import Kind
from rocelab.report import palette, render, wording
from rocelab.report.figure import Column, Document, Note, Section, Table
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

DEMO = Path(__file__).parents[1] / "data" / "sample-run.tar.gz"
MAX_WORDS = 9000


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Element, pl.DataFrame]:
    """The demo's page and results."""
    folder = tmp_path_factory.mktemp("demo")
    with tarfile.open(DEMO) as tar:
        tar.extractall(folder, filter="data")
    return report_page.page(folder), pl.read_parquet(folder / "results.parquet")


@pytest.fixture(scope="module")
def page(demo: tuple[Element, pl.DataFrame]) -> Element:
    return demo[0]


def words(element: Element) -> int:
    """All words of the page but those inside drawings."""
    if element.tag in {"svg", "style"}:
        return 0
    return sum(
        words(part) if isinstance(part, Element) else len(part.split()) for part in element.parts
    )


def test_the_demo_s_report_is_short(page: Element) -> None:
    assert 2000 < words(page) <= MAX_WORDS


def test_no_paragraph_stands_twice(page: Element) -> None:
    said = Counter(p.text for p in page.all("p") if len(p.text.split()) > 12)
    assert said
    assert [text for text, times in said.items() if times > 1] == []


def test_the_first_section_answers(demo: tuple[Element, pl.DataFrame]) -> None:
    page, results = demo
    section = page.all("section")[0]
    assert section.all("h2")[0].text == "What a packet costs, and where"
    sentences = [
        part.text for part in section.parts if isinstance(part, Element) and part.tag == "p"
    ]
    assert len([text for text in sentences if not text.startswith("Accelerator")]) == 4
    costs, driver, stages = section.all("div", class_="card")
    rows = {row["transport"]: row for row in costs.all("table")[0].table()}
    assert list(rows) == ["tcp", "rxe-v1", "rxe-v2"]
    for transport, row in rows.items():
        here = results.filter(
            tool="pingpong", size=64, metric="cost.message", kind="marginal", transport=transport
        )
        work = here["value"].sum()
        assert f"{units.number(work)} " in sentences[0]
        parts = [cell for name, cell in row.items() if name != "transport" and cell != units.ABSENT]
        assert sum(float(cell.replace(",", "")) for cell in parts) == pytest.approx(work, rel=1e-3)
    for row in driver.all("table")[0].table():
        name = row["transport"]
        parts = [float(cell.replace(",", "")) for cell in list(row.values())[1:]]
        of_rxe = [float(rows[name][key].replace(",", "")) for key in rows[name] if "rxe" in key
                  and rows[name][key] != units.ABSENT]  # fmt: skip
        assert sum(parts) == pytest.approx(sum(of_rxe), rel=1e-3)
        assert min(parts) > 0
    assert [row["transport"] for row in stages.all("table")[0].table()] == ["rxe-v1", "rxe-v2"]
    bars = [title.text.split(", ")[0] for title in stages.all("title")]
    assert list(dict.fromkeys(bars)) == ["rxe-v1", "rxe-v2"]


def test_facts_come_last(page: Element) -> None:
    anchors = [section.attributes["id"] for section in page.all("section")]
    assert anchors[0] == "answer"
    assert anchors[-2:] == ["where", "reproduce"]
    assert "Processor" not in page.all("header")[0].text
    assert "Processor" in page.all("section", id="where")[0].text


def test_stages_are_drawn_in_the_summary_and_once_more(page: Element) -> None:
    """No other section draws them, and no bar of the section stands there twice."""
    legends = {
        section.attributes["id"]: {entry.text for entry in section.all("li")}
        for section in page.all("section")
    }
    assert {anchor for anchor, names in legends.items() if "icrc" in names} == {"answer", "stages"}
    [stages] = page.all("section", id="stages")
    drawn = Counter(
        (card.attributes["id"], panel.all("h4")[0].text, title.text.partition(":")[0])
        for card in stages.all("div", class_="card")
        for panel in card.all("div", class_="panel")
        for title in panel.all("title")
    )
    assert drawn
    assert set(drawn.values()) == {1}


def test_one_repetition_gives_one_number(page: Element) -> None:
    headings = {cell.text for cell in page.all("th")}
    assert "one repetition" in headings
    assert not headings & {"st. dev.", "95 % CI", "smallest", "largest"}
    assert "1 repetitions" not in page.text


def test_thousands_have_commas(page: Element) -> None:
    texts = [cell.text for cell in page.all("td")] + [text.text for text in page.all("text")]
    assert not [text for text in texts if re.search(r"(?<![a-z\d.])\d{1,3}[\s\u202f]\d{3}\b", text)]
    assert [text for text in texts if re.fullmatch(r"\d{1,3}(,\d{3})+", text)]
    assert not [text for text in texts if re.fullmatch(r"[\d.]+(k|[eE][+-]?\d+)", text)]


def test_transports_can_be_left_out(page: Element) -> None:
    """A box for each, and rules for the rows, columns, bars and lines that are its own."""
    [style] = page.all("style")
    boxes = page.all("input", type="checkbox")
    names = [label.text for label in page.all("label")]
    assert names == ["tcp", "rxe-v1", "rxe-v2"]
    assert all("checked" in box.attributes for box in boxes)
    for position, (box, name) in enumerate(zip(boxes, names, strict=True)):
        off = f"body:has(#{box.attributes['id']}:not(:checked))"
        assert f"{off} :is(tr,th,td,.panel).t{position}{{display:none}}" in style.text
        assert f'{off} .card [stroke="{palette.transport_style(name).colour.light}"]' in style.text
        rows = page.all("tr", class_=f"t{position}")
        assert rows
        assert all(name in [cell.text for cell in row.all("td")] for row in rows)
        [cpu] = page.all("div", id="cpu-pingpong-latency-lockstep")
        marks = [e for e in cpu.walk() if e.attributes.get("class") == f"t{position}"]
        bars = [title.text for mark in marks for title in mark.all("title")]
        assert bars
        assert all(text.startswith(f"{name}, ") for text in bars)


def test_values_can_be_read_by_keyboard(page: Element) -> None:
    """A mark that has a value on hover takes the focus, and shows the same text then."""
    marks = page.all("g", class_="v")
    titles = [title for svg in page.all("svg") for title in svg.all("title")]
    assert len(marks) == len(titles) > 100
    for mark in marks:
        assert mark.attributes["tabindex"] == "0"
        assert mark.all("text")[-1].text == mark.all("title")[0].text
    [style] = page.all("style")
    assert ".v:focus .tip { display: block; }" in style.text


def test_a_cell_names_its_column_where_columns_do_not_fit(page: Element) -> None:
    for table in page.all("table"):
        headings = [cell.text for cell in table.all("th")]
        for row in table.all("tr")[1:]:
            assert [cell.attributes["data-label"] for cell in row.all("td")] == headings


_HUES = {"header": (190, 235), "memory": (15, 45), "bookkeeping": (85, 155), "handover": (245, 285)}
"""Degrees; the legend calls them blue, orange, green and violet."""


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_colours_are_what_the_caption_says(ground: str) -> None:
    for stage in stage_table.STAGES:
        if stage.kind not in _HUES:
            continue
        value = getattr(palette.STAGES[stage.name], ground)
        red, green, blue = (int(value[at : at + 2], 16) / 255 for at in (1, 3, 5))
        low, high = _HUES[stage.kind]
        assert low <= colorsys.rgb_to_hsv(red, green, blue)[0] * 360 <= high, stage.name


def test_a_run_without_a_cpu_probe_shows_its_latency_first(tmp_path: Path) -> None:
    run = Synthetic(accelerator="kvm", tests=("write_lat",), sizes=(64, 4096), repetitions=3)
    page = report_page.page(run.write(tmp_path), "answer")
    [section] = page.all("section")
    assert "Mean latency, by transport" in section.text
    rows = section.all("table")[0].table()
    results = pl.read_parquet(tmp_path / "results.parquet")
    for row, transport in itertools.zip_longest(rows, ("tcp", "rxe-v2")):
        median = results.filter(
            metric="latency.mean", transport=transport, size=4096
        )["value"].median()  # fmt: skip
        assert isinstance(median, float)
        assert row == {"transport": transport, "latency": units.number(median / 1e3)}


def test_a_run_without_numbers_has_no_answer(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": "rocelab.run/1"}')
    page = report_page.page(tmp_path)
    assert not page.all("section", id="answer")
    assert "no results" in page.all("section", id="findings")[0].text


def test_mpirun_s_start_is_not_hidden(tmp_path: Path) -> None:
    """It is among the work of an MPI message, so another benchmark comes first."""
    mpi = Synthetic(tool="mpibench", tests=("write_lat",), sizes=(64,), timed=True)
    said = report_page.page(mpi.write(tmp_path / "mpi")).all("section")[0].all("p")[0].text
    among = "with its share of the start of {} and the cost of the probes, costs"
    assert f"message of mpibench write_lat, {among.format('mpirun')}" in said
    both = tmp_path / "both"
    Synthetic(tests=("write_lat",), sizes=(64,), timed=True).write(both)
    rows = [pl.read_parquet(tmp_path / name / "results.parquet") for name in ("mpi", "both")]
    pl.concat(rows).write_parquet(both / "results.parquet")
    said = report_page.page(both).all("section")[0].all("p")[0].text
    assert f"message of perftest write_lat, {among.format('the programs')}" in said


def test_every_kind_has_words() -> None:
    assert wording.KINDS.keys() == set(Kind)


def test_commands_in_a_text_are_code() -> None:
    """What a run folder says is escaped within them, too."""
    said = "run `a <b>` and <i>"
    table = Table("t", (Column("because"),), ((said,),))
    page = render.page(
        Document("t", "", (), (), (Section("s", "S", notes=(Note(said),), tables=(table,)),), "")
    )
    assert page.count("run <code>a &lt;b&gt;</code> and &lt;i&gt;") == 2


def test_a_message_s_packet_is_the_most_frequent_one(tmp_path: Path) -> None:
    """UCX sends one RDMA WRITE to connect, which costs something else than a message's SEND."""
    run = Synthetic(transports=("rxe-v2",), tests=("send_lat",), sizes=(64,)).write(tmp_path)
    results = pl.read_parquet(run / "results.parquet")
    stage = pl.col("metric").str.starts_with("stage.")
    sends = results.filter(stage, kind="SEND")
    assert not sends.is_empty()
    once = sends.with_columns(
        pl.lit("RDMA_WRITE").alias("kind"),
        pl.when(pl.col("metric").str.ends_with(".count")).then(1.0).otherwise(pl.col("value") * 9)
        .alias("value"),
    )  # fmt: skip
    for rows in ([once, results], [results, once]):
        pl.concat(rows).write_parquet(run / "results.parquet")
        page = report_page.page(run)
        assert "The mean SEND packet of that message" in page.all("section")[0].text
        assert "n1 sends SEND" in page.text
        assert "sends RDMA WRITE" not in page.text
        assert re.search(r"too rare for a cost are left out: \d+ RDMA WRITE\.", page.text)


def test_an_emulated_latency_does_not_come_first(tmp_path: Path) -> None:
    """Where nothing but stages was counted, they do; in real time the latency leads."""
    for accelerator, begins in (
        ("icount", "The driver's work on the packet of an 8 KiB message of perftest send_lat is"),
        ("native", "An 8 KiB message of perftest send_lat takes"),
    ):
        run = Synthetic(
            transports=("rxe-v2",), tests=("send_lat",), sizes=(64, 8192), accelerator=accelerator
        )
        page = report_page.page(run.write(tmp_path / accelerator))
        said = page.all("section")[0].all("p")[0].text.replace("\u202f", " ")
        assert said.startswith(begins)
        assert "emulated instructions" not in page.text


def test_the_cost_of_a_message_leads_without_its_parts(tmp_path: Path) -> None:
    """Without rxecpu the total is known; it is of all nodes together."""
    run = Synthetic(
        transports=("tcp", "rxe-v2"), tests=("send_lat",), sizes=(64,), accelerator="native"
    )
    folder = run.write(tmp_path / run.run)
    results = pl.read_parquet(folder / "results.parquet")
    latency = results.filter(metric="latency.mean")
    costs = [
        latency.with_columns(
            metric=pl.lit("cost.message"),
            kind=pl.lit("marginal"),
            node=pl.lit(node),
            value=pl.when(pl.col("transport") == "tcp").then(cost).otherwise(2 * cost),
        )
        for node, cost in (("n1", 7_000.0), ("n2", 13_000.0))
    ]
    pl.concat([results, *costs]).write_parquet(folder / "results.parquet")
    said = report_page.page(folder).all("section")[0].all("p")[0].text.replace("\u202f", " ")
    assert said.startswith(
        "A 64 B message of perftest send_lat costs both nodes 20 µs over tcp and 40"
    )
