# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as a page: complete, self-contained, reproducible and accessible."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import html_tree
from html_tree import Element
from rocelab.report import build, palette
from synthetic_run import Synthetic

pytestmark = pytest.mark.slow

RUN = Synthetic(
    transports=("tcp", "rxe-v1", "rxe-v2"),
    tests=("write_lat", "read_lat", "write_bw"),
    sizes=(64, 4096),
    failing=("perftest-write_bw.rxe-v1.r02",),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = RUN.write(tmp_path_factory.mktemp("runs") / RUN.run)
    assert build(folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text: str) -> Element:
    return html_tree.parse(text)


def test_is_well_formed_and_says_what_it_is(page: Element, text: str) -> None:
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    assert [heading.text for heading in page.all("h1")] == ["demo: tcp, rxe-v1 and rxe-v2 compared"]
    ids = [element.attributes["id"] for element in page.walk() if "id" in element.attributes]
    assert len(ids) == len(set(ids))


def test_every_reference_stays_on_the_page(page: Element, text: str) -> None:
    ids = {element.attributes["id"] for element in page.walk() if "id" in element.attributes}
    for element in page.walk():
        for name in ("href", "xlink:href"):
            target = element.attributes.get(name)
            assert target is None or (target[0] == "#" and target[1:] in ids)
        assert not {"src", "srcset", "action", "data", "poster"} & element.attributes.keys()
    assert not page.all("script") + page.all("link") + page.all("iframe") + page.all("img")
    outside = set(re.findall(r"[a-z]+://[^\s\"'<)]+", text))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {f"#{known}" for known in ids}


def test_policy_allows_the_style_sheet_and_nothing_else(page: Element) -> None:
    [policy] = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    [style] = page.all("style")
    digest = base64.b64encode(hashlib.sha256(style.text.encode()).digest()).decode()
    assert policy.attributes["content"].split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    # the policy would ignore these, and the page would look broken
    assert not [element.tag for element in page.walk() if "style" in element.attributes]
    assert not [
        name for element in page.walk() for name in element.attributes if name.startswith("on")
    ]


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(folder, other)
    (other / "report.html").unlink()
    shutil.rmtree(other / "figures")
    build(other)
    names = sorted(path.name for path in (folder / "figures").iterdir())
    assert names == sorted(path.name for path in (other / "figures").iterdir())
    for name in ("report.html", *(f"figures/{name}" for name in names)):
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.slow
def test_raw_output_is_not_needed_and_stale_figures_go(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(folder, other)
    for path in other.glob("cells/*/*"):
        if path.name != "cell.json":
            path.unlink()
    (other / "figures/of-an-older-version.svg").write_text("<svg/>")
    build(other)
    assert (other / "report.html").read_bytes() == (folder / "report.html").read_bytes()
    assert not (other / "figures/of-an-older-version.svg").exists()


def test_every_figure_has_words_numbers_and_a_file(page: Element, folder: Path) -> None:
    figures = page.all("div", class_="card")
    assert len(figures) >= 7
    for figure in figures:
        drawn = [svg for svg in figure.all("svg") if svg.attributes.get("role") == "img"]
        assert drawn
        for svg in drawn:
            assert len(svg.attributes["aria-label"]) > 40
        assert len(figure.all("figcaption")[0].text) > 40
        assert figure.all("table")[0].table()
        assert (folder / "figures" / f"{figure.attributes['id']}.svg").is_file()
    assert len(list((folder / "figures").iterdir())) == len(figures)


def test_figure_files_stand_alone(folder: Path) -> None:
    for path in (folder / "figures").iterdir():
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
        assert "Accelerator: tcg" in "".join(root[1].itertext())
        words = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
        if path.name.startswith(("latency", "bandwidth")):
            assert {"rxe-v1", "rxe-v2"} <= words  # a legend goes with it


def test_marks_say_what_they_are_on_hover(page: Element) -> None:
    titles = [title.text for title in page.all("title")[1:]]
    assert any(re.fullmatch(r"rxe-v2, 64.B: [\d.]+ emulated [µm]s \(.*\)", text) for text in titles)
    assert any(
        re.fullmatch(r"rxe-v1, 4.KiB, icrc: [\d.]+ emulated µs, .* over the repetitions; .*", text)
        for text in titles
    )


def test_every_colour_of_a_figure_has_a_dark_counterpart(page: Element) -> None:
    known = {colour.light for colour in palette.all_colours()} | {"none", "transparent"}
    used = {
        element.attributes[name]
        for svg in page.all("svg")
        for element in svg.walk()
        for name in ("fill", "stroke")
        if name in element.attributes
    }
    assert used - known == set()
    [style] = page.all("style")
    for colour in palette.all_colours():
        assert f'svg [fill="{colour.light}"]{{fill:{colour.dark}}}' in style.text


def test_a_transport_has_one_colour_everywhere(page: Element) -> None:
    colours: dict[str, set[str]] = {}
    for legend in page.all("ul", class_="legend"):
        for entry in legend.all("li"):
            fills = {e.attributes["fill"] for e in entry.walk() if "fill" in e.attributes}
            colours.setdefault(entry.text, set()).update(fills)
    assert {"tcp", "rxe-v1", "rxe-v2", "icrc", "copy"} <= colours.keys()
    assert all(len(each) == 1 for each in colours.values())
    shared = [next(iter(each)) for each in colours.values()]
    transports = [next(iter(colours[name])) for name in ("tcp", "rxe-v1", "rxe-v2")]
    assert all(shared.count(colour) == 1 for colour in transports)
