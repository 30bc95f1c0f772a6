# SPDX-License-Identifier: GPL-2.0-or-later
"""Excerpts of captures: the analysis of them is that of the captures, to the byte."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from corpus import CAPTURES, SAMPLES, files, frames
from rocelab._core import write_excerpt
from rocelab.capture.analysis import Options, analyze
from rocelab.capture.select import Select
from rocelab.errors import UsageError

OPTIONS = {
    "as usual": Options(),
    "ICRCs not verified": Options(icrc=False),
    "another port": Options(ports=[4792, 9999]),
    "from the first millisecond": Options(select=Select(time_ns=(0, 1_000_000))),
}


def results(paths: Sequence[Path], options: Options, folder: Path) -> tuple[object, object]:
    """What the captures give, and what their excerpts give."""
    excerpts = [folder / f"{at}" for at in range(len(paths))]
    for path, excerpt in zip(paths, excerpts, strict=True):
        write_excerpt(path, excerpt, ports=options.ports, icrc=options.icrc, captures=len(paths))
    names = [str(path) for path in paths]
    outcomes: list[object] = []
    for inputs, is_excerpt in ((names, False), ([str(path) for path in excerpts], True)):
        try:
            outcomes.append(analyze(inputs, options, names=names, excerpts=is_excerpt).result)
        except UsageError as error:
            outcomes.append((error.what, error.cause, error.action))
    return outcomes[0], outcomes[1]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", SAMPLES)
def test_one_capture(name: str, options: Options, tmp_path: Path) -> None:
    whole, part = results([CAPTURES / name], options, tmp_path)
    assert part == whole


@pytest.mark.parametrize("seed", range(40))
def test_merged_captures(seed: int, tmp_path: Path) -> None:
    # more than eight are read in smaller pieces
    pick = random.Random(seed)
    names = pick.sample(SAMPLES, pick.choice([2, 3, 12]))
    options = pick.choice(list(OPTIONS.values()))
    whole, part = results([CAPTURES / name for name in names], options, tmp_path)
    assert part == whole


def test_disorder_over_blocks(tmp_path: Path) -> None:
    """Records are sorted within a window of blocks, which an excerpt must keep."""
    pick = random.Random(1)
    net = frames.Net()
    packets = []
    for psn in range(4000):
        data = bytes(pick.choice([0, 60, 64, 1000, 4096]))
        frame = frames.frame(net, "a", frames.transport("RC_SEND_ONLY", 17, psn, payload=data))
        # most of them late by two packets, or by more than the window
        late = pick.choice([0, 0, 0, 25_000, 20_000_000])
        packets.append((10**9 + 10_000 * psn - late, frame))
    capture = tmp_path / "a.pcap"
    capture.write_bytes(files.pcap(packets))
    (tmp_path / "excerpts").mkdir()
    whole, part = results([capture], Options(), tmp_path / "excerpts")
    assert part == whole


def test_cut_and_corrupt_captures(tmp_path: Path) -> None:
    """An error is where it is in the capture: behind the packets before it."""
    good = (CAPTURES / "fault-drop-behind.pcap").read_bytes()
    bad = {
        "cut": good[:-7],
        "empty": b"",
        "unknown": b"no capture at all",
        "corrupt": good[:5000] + b"\xff" * 64 + good[5064:],
        "gz": (CAPTURES / "rc-v2-ipv4.pcap.gz").read_bytes()[:-40],
    }
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
    for at, names in enumerate([*itertools.combinations(bad, 1), *itertools.combinations(bad, 2)]):
        folder = tmp_path / f"excerpts-{at}"
        folder.mkdir()
        whole, part = results([tmp_path / name for name in names], Options(), folder)
        assert part == whole, names


def test_payloads_are_left_out(tmp_path: Path) -> None:
    capture = CAPTURES / "testbed-send-bw-1024.pcap"
    excerpt = tmp_path / "excerpt"
    write_excerpt(capture, excerpt)
    assert excerpt.stat().st_size < capture.stat().st_size / 4


def test_no_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError):
        write_excerpt(CAPTURES / "cm.pcap", tmp_path / "mine")


@pytest.mark.parametrize("keep", [0, 10, 16, 17, 30, 60, 200])
def test_a_broken_excerpt_is_an_error(keep: int, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    write_excerpt(CAPTURES / "fault-corrupt.pcap", whole)
    broken.write_bytes(whole.read_bytes()[:keep])
    with pytest.raises(UsageError):
        analyze([str(broken)], excerpts=True)
    broken.write_bytes(whole.read_bytes()[:keep] + b"\xff" * 64)
    with pytest.raises(UsageError):
        analyze([str(broken)], excerpts=True)
