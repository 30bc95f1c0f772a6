# SPDX-License-Identifier: GPL-2.0-or-later
"""A ring of files as dumpcap and tcpdump write it: complete ones, their order, and lost ones."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest

from corpus import files, frames
from rocelab.capture import ring_names
from rocelab.capture.ring import Part, Ring
from rocelab.errors import UsageError

FRAME = frames.frame(frames.Net(), "a", frames.transport("RC_SEND_ONLY", 18, 1, b"", bytes(8)))


def part_of(second: int, count: int = 3) -> bytes:
    """A capture that begins so late."""
    return files.pcap([(second * 10**9 + at, FRAME) for at in range(count)])


def names(parts: list[Part]) -> list[str]:
    return [part.name for part in parts]


def take(ring: Ring) -> list[str]:
    """Read what is complete, as the analyzer does."""
    taken = []
    for part in ring.new_parts():
        with ring.open_part(part) as path:
            if path is not None:
                taken.append(part.name)
                part.is_taken = True
    return taken


@pytest.mark.parametrize(
    "ordered",
    [
        ["ring", "ring1", "ring2", "ring10"],
        ["ring.pcap0", "ring.pcap1", "ring.pcap9", "ring.pcap10", "ring.pcap11.gz"],
        ["r_00009_20261129120000.pcapng", "r_00010_20261129120001.pcapng"],
        ["r_99999_20261129120000.pcapng", "r_100000_20261129120001.pcapng"],
        ["eth0-20261129-235959.pcap", "eth0-20261130-000000.pcap"],
        ["ens192_00.pcap", "ens192_01.pcap"],
        ["ring" + "8" * 40, "ring" + "9" * 40],
    ],
)
def test_names_are_in_the_order_of_their_numbers(ordered: list[str]) -> None:
    mixed = list(ordered)
    random.Random(1).shuffle(mixed)
    assert sorted(mixed, key=ring_names.order) == ordered
    assert ring_names.are_one_series(mixed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("eth0_00001_20261129120000.pcapng", "eth1_00001_20261129120000.pcapng"),
        ("ens192-20261129.pcap", "ens224-20261129.pcap"), ("ring1", "ring.pcap1"),
        ("mlx5_0-120000", "mlx5_1-120000"),
    ],
)  # fmt: skip
def test_interfaces_have_captures_of_their_own(one: str, other: str) -> None:
    assert not ring_names.are_one_series([one, other])


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("r_00017_20261129120000.pcapng", 17), ("r_20261129120000_00017.pcapng", 17),
        ("r_00017_20261129120000.pcapng.gz", 17), ("r_00017_20261129120000", 17),
        ("ring17", None), ("ring_120000", None),
        ("r_\u0660\u0660\u0660\u0661\u0667_20261129120000.pcapng", None),
    ],
)  # fmt: skip
def test_numbers_of_dumpcap(name: str, number: int | None) -> None:
    assert ring_names.number(name) == number


def test_the_file_that_is_written_is_not_complete(tmp_path: Path) -> None:
    with Ring(str(tmp_path)) as ring:
        assert take(ring) == []
        (tmp_path / "ring").write_bytes(part_of(1))
        assert take(ring) == []
        # dumpcap and tcpdump close a file before they create the next, which is empty first
        (tmp_path / "ring1").write_bytes(b"")
        assert take(ring) == ["ring"]
        (tmp_path / "ring1").write_bytes(part_of(2)[:50])
        assert take(ring) == []
        (tmp_path / "ring1").write_bytes(part_of(2))
        (tmp_path / "ring2").write_bytes(part_of(3))
        assert take(ring) == ["ring1"]
        assert names(ring.rest()) == ["ring2"]
        assert ring.missed == []


def test_a_ring_that_began_again_is_read_from_its_oldest_file(tmp_path: Path) -> None:
    for number, second in enumerate((14, 15, 11, 12, 13)):
        (tmp_path / f"ring.pcap{number}").write_bytes(part_of(second))
    # the one that is written now
    os.utime(tmp_path / "ring.pcap1", ns=(2**62, 2**62))
    with Ring(str(tmp_path)) as ring:
        assert take(ring) == ["ring.pcap2", "ring.pcap3", "ring.pcap4", "ring.pcap0"]


def test_overwritten_files_are_read_again(tmp_path: Path) -> None:
    with Ring(str(tmp_path)) as ring:
        seen = []
        for second in range(1, 8):
            (tmp_path / f"ring{second % 3}").write_bytes(part_of(second))
            seen += take(ring)
        assert seen == ["ring1", "ring2", "ring0", "ring1", "ring2", "ring0"]
        assert ring.missed == []


def test_a_file_that_was_overwritten_before_it_was_read_is_named(tmp_path: Path) -> None:
    with Ring(str(tmp_path)) as ring:
        for second in (1, 2, 3):
            (tmp_path / f"ring{second % 3}").write_bytes(part_of(second))
        waiting = ring.new_parts()
        assert names(waiting) == ["ring1", "ring2"]
        (tmp_path / "ring1").write_bytes(part_of(4))
        with ring.open_part(waiting[0]) as path:
            assert path is None
        assert ring.missed == ["ring1 was overwritten"]
        ring.missed.clear()
        # seen before it was opened
        (tmp_path / "ring2").write_bytes(part_of(5))
        assert names(ring.new_parts()) == ["ring0", "ring1"]
        assert ring.missed == ["ring2 was overwritten"]


def test_a_file_that_was_deleted_before_it_was_read_is_named(tmp_path: Path) -> None:
    def name(number: int) -> str:
        return f"r_{number:05}_20261129120{number:03}.pcapng"

    with Ring(str(tmp_path)) as ring:
        for number in (1, 2, 3):
            (tmp_path / name(number)).write_bytes(part_of(number))
        waiting = ring.new_parts()
        (tmp_path / name(1)).unlink()
        with ring.open_part(waiting[0]) as path:
            assert path is None
        assert ring.missed == [f"{name(1)} was deleted"]
        ring.missed.clear()
        for number in (4, 5, 6, 7):
            (tmp_path / name(number)).write_bytes(part_of(number))
        for number in (2, 3, 4, 5):
            (tmp_path / name(number)).unlink()
        assert take(ring) == [name(6)]
        # 4 and 5 came and went between two looks
        assert ring.missed == [
            f"{name(2)} was deleted",
            f"{name(3)} was deleted",
            f"2 file(s) before {name(6)} were deleted",
        ]


def test_compressed_files_take_the_place_of_theirs(tmp_path: Path) -> None:
    """`tcpdump -z gzip` compresses each file when it is complete, and removes it then."""
    with Ring(str(tmp_path)) as ring:
        for second in (1, 2, 3):
            (tmp_path / f"ring{second}").write_bytes(part_of(second))
        assert take(ring) == ["ring1", "ring2"]
        packed = gzip.compress(part_of(2))
        (tmp_path / "ring2.gz").write_bytes(packed[:20])
        assert take(ring) == []
        (tmp_path / "ring2.gz").write_bytes(packed)
        (tmp_path / "ring2").unlink()
        (tmp_path / "ring3.gz").write_bytes(gzip.compress(part_of(3)))
        (tmp_path / "ring3").unlink()
        (tmp_path / "ring4").write_bytes(part_of(4))
        assert take(ring) == ["ring3.gz"]
        assert ring.missed == []


def test_what_is_no_part_is_named_and_never_opened(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(part_of(1))
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "ring1").symlink_to(outside / "secret")
    os.mkfifo(inside / "ring2")
    (inside / "ring3").mkdir()
    (inside / "notes.txt").write_text("what was done")
    (inside / "ring4").write_bytes(part_of(4))
    (inside / "ring\n\x1b[31m5").write_bytes(part_of(5))
    with Ring(str(inside)) as ring:
        (inside / "ring\n\x1b[31m5").unlink()
        (inside / "ring5").write_bytes(part_of(5))
        assert take(ring) == ["ring4"]
        assert sorted(ring.others) == ["notes.txt is no capture", "ring1 is a link"]
        ring.others.clear()
        (inside / "ring5").unlink()
        (inside / "ring5").symlink_to(outside / "secret")
        assert take(ring) == []
        assert ring.others == ["ring5 is a link"]


def test_a_link_that_takes_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(part_of(1))
    ring_path = tmp_path / "ring"
    ring_path.mkdir()
    for second in (1, 2):
        (ring_path / f"ring{second}").write_bytes(part_of(second))
    with Ring(str(ring_path)) as ring:
        (one,) = ring.new_parts()
        (ring_path / "ring1").unlink()
        (ring_path / "ring1").symlink_to(tmp_path / "secret")
        with ring.open_part(one) as path:
            assert path is None


def test_a_pipe_that_takes_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    for second in (1, 2):
        (tmp_path / f"ring{second}").write_bytes(part_of(second))
    with Ring(str(tmp_path)) as ring:
        (one,) = ring.new_parts()
        (tmp_path / "ring1").unlink()
        os.mkfifo(tmp_path / "ring1")
        with ring.open_part(one) as path:
            assert path is None
        assert ring.missed == ["ring1 was deleted"]
        # its reader has closed it
        with pytest.raises(OSError, match="No such device or address"):
            os.open(tmp_path / "ring1", os.O_WRONLY | os.O_NONBLOCK)


def test_two_captures_are_told_from_one(tmp_path: Path) -> None:
    for name in ("eth0_1", "eth0_2", "eth1_1"):
        (tmp_path / name).write_bytes(part_of(1))
    with Ring(str(tmp_path)) as ring, pytest.raises(UsageError, match="several captures"):
        ring.new_parts()
    with Ring(str(tmp_path / "eth0*")) as ring:
        assert take(ring) == ["eth0_1"]
        assert names(ring.rest()) == ["eth0_2"]


def test_where_nothing_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(part_of(1))
    for where in (tmp_path / "file", tmp_path / "absent", tmp_path / "absent" / "x*"):
        with pytest.raises(UsageError, match="cannot follow"):
            Ring(str(where))
