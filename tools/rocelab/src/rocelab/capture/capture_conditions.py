# SPDX-License-Identifier: GPL-2.0-or-later
"""Conditions of a capture as a whole, each reported once, and how they affect the findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

_MAX_DISJOINT = 3
"""More gaps between files are those of a ring, one behind the other."""
_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"))


def nanoseconds(value: int) -> str:
    """A time in the largest unit that it fills."""
    for size, unit in _UNITS:
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value} ns"


def _clocks(evidence: dict[str, Any], names: Sequence[str], offsets_ns: Sequence[int]) -> list[str]:
    """A sentence for each file whose clock was corrected, or contradicts another's."""
    rows = [
        f"the clock of {names[file]} lags by at least {nanoseconds(offset)} (responses before "
        "their requests): its times were corrected, and latencies across files are too short"
        for file, offset in enumerate(offsets_ns)
        if offset
    ]
    rows += [
        f"the clock of {names[row['behind']]} lags that of {names[row['than']]} by at least "
        f"{nanoseconds(row['least_ns'])} ({row['count']} responses before their requests): nothing "
        "is concluded from the order of their packets"
        for row in evidence["clocks"]
    ]
    return rows


def _disjoint(evidence: dict[str, Any], names: Sequence[str]) -> list[str]:
    """A sentence for each gap between files that were merged."""
    spans = sorted(
        (span[0], span[1], name)
        for span, name in zip(evidence["spans_ns"], names, strict=True)
        if span is not None
    )
    rows = []
    end = -(1 << 63)
    for before, after in pairwise(spans):
        end = max(end, before[1])
        if after[0] > end:
            gap = nanoseconds(after[0] - end)
            rows.append(
                f"{before[2]} ends {gap} before {after[2]} begins: they show different times, or "
                "their clocks differ"
            )
    if len(rows) > _MAX_DISJOINT:
        return [f"{len(rows) + 1} groups of files show different times, like parts of one capture"]
    return rows


def _layer(row: dict[str, Any]) -> str:
    """A layer that is not looked into, as `link type 147 (USER0)`."""
    number = row["number"]
    name = f" ({row['name']})" if row["name"] else ""
    match row["kind"]:
        case "link_type":
            return f"link type {number}{name}"
        case "ethertype":
            return f"EtherType 0x{number:04x}{name}"
        case "ip_protocol":
            return f"IP protocol {number}{name}"
        case "udp_port":
            return f"UDP port {number}{name}"
        case _:
            return "more than four tunnels within each other"


def not_looked_into(row: dict[str, Any]) -> str:
    """A sentence about packets of which not every layer was looked into."""
    if row["kind"] == "link_type":
        text = f"{_layer(row)} is not read: {row['packets']} packet(s) skipped"
    else:
        text = f"{row['packets']} packet(s) of {_layer(row)} not looked into"
    if row["with_roce"]:
        text += f"; {row['with_roce']} of those tried hold RoCE with a correct ICRC"
    return text


def _fragments(evidence: dict[str, Any], read: dict[str, Any]) -> str:
    """A sentence about RoCE packets in IP fragments."""
    count, whole, other = read["roce_fragments"], read["reassembled"], evidence["of_other_header"]
    text = (
        f"{count} RoCE packet(s) were sent in IP fragments ({read['fragments']} fragments of UDP "
        "in all), which RoCE forbids: the path MTU of the queue pairs does not fit the MTU of the "
        "sender's link, or over IPv4 without DF of another link on the way; "
        f"{'all' if whole == count else whole} were put together"
    )
    if other:
        text += (
            f" ({'all' if other == whole else other} with an ICRC that was made with another IPv4 "
            "identification or DF flag: a receiver that puts them together drops them)"
        )
    if not evidence["fragmented"]:
        return f"{text}, and are judged like others"
    if evidence["moved"]:
        text += ", but records were out of order, so fragments may be mixed up"
    elif whole == count:
        text += ", but of others the first fragment is missing"
    return f"{text}; nothing is concluded from missing packets"


def _sentence_on_unlisted(count: int, unlisted: dict[str, Any]) -> str:
    """A sentence about connections beyond the limit of the list."""
    text = (
        f"{count} more connection(s) are not listed (--max-connections): findings and verdict "
        "are about all"
    )
    if unlisted["dropped"]:
        text += (
            f", but the verdict lacks {nanoseconds(unlisted['dropped_lost_ns'])} that "
            f"{unlisted['dropped']} of them lost, each less than others"
        )
    return text


_FIELDS = {
    "length": "the IP length was {}",
    "source": "the source address was {}",
    "destination": "the destination address was {}",
    "source_port": "the UDP source port was {}",
    "destination_port": "the UDP destination port was {}",
}


def _change_in_words(one: dict[str, str]) -> str:
    """What a field of a direction was, and who mostly changes it."""
    text = f"from {one['from']} to {one['to']} {_FIELDS[one['field']].format(one['was'])}"
    if one["field"] in {"source", "destination"}:
        return text + " (address translation)"
    if (one["field"], one["was"]) == ("length", "0"):
        return text + " (the sender made the ICRC before the length)"
    return text


def _all_wrong(row: dict[str, Any], *, followed: bool) -> str:
    """A sentence about ICRCs of which none is right."""
    if row["changed"]:
        how = "; ".join(_change_in_words(one) for one in row["changed"])
        how = f"because a field was changed after they were made: {how}"
    elif row["constant"]:
        how = f"the same way: each is {row['constant']}, a constant"
    elif row["other_seed"]:
        how = "the same way: the CRC begins with another seed, or is inverted otherwise"
    else:
        how = "and have nothing in common: another algorithm, or addresses changed on the way"
    follows = (
        "the packets are followed nevertheless"
        if followed
        else "a pipe is not read again, and no connection is followed: save it to a file"
    )
    return f"all ICRCs are wrong {how}; {follows}, and --no-icrc leaves the ICRCs unchecked"


def _times(looks: Sequence[tuple[int, int]]) -> str:
    """How often packets appear, as `twice`."""
    most = max(count for _, count in looks)
    return "twice" if most == 2 else f"up to {most} times"


def _copies(
    evidence: dict[str, Any], looks: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, str]]:
    """A condition for each reason why packets are there several times."""
    if evidence["copies_of_interfaces"]:
        yield (
            "several_interfaces",
            f"{evidence['copies_of_interfaces']} packets were seen before by another interface, as "
            "of tcpdump -i any: a VLAN or a bond and its adapter, both ends of a veth, a bridge or "
            "a tunnel; the first look at each is followed",
        )
    if evidence["copies"]:
        yield (
            "mirrored",
            f"nearly every packet appears {_times(looks)}: {evidence['copies']} copies were "
            "dropped (a port mirrored in both directions, or several taps)",
        )
    elif evidence["looks"] and not looks:
        yield (
            "mirrored",
            f"nearly every packet appears {_times(evidence['looks'])} (a port mirrored in both "
            "directions, or several taps): nothing is concluded from repeated packets; save the "
            "stream to a file, so that the copies can be dropped",
        )


def _without_icrc(read_as: str | None, observed: str | None) -> Iterator[tuple[str, str]]:
    """A condition if no packet has an ICRC."""
    how = read_as or observed
    if how is None:
        return
    lengths = {
        "left_out": "the lengths of IP and UDP leave its four bytes out",
        "counted": "the lengths of IP and UDP count its four bytes, and the frames end before them",
    }[how]
    meaning = (
        "captured before an adapter or driver added it, or made by software that adds none"
        if read_as
        else "a pipe is not read again, and lengths are misread: save it to a file"
    )
    yield ("no_icrc", f"no packet has an ICRC: {lengths}; {meaning}")


def conditions(
    raw: dict[str, Any],
    names: Sequence[str],
    offsets_ns: Sequence[int],
    *,
    looks: Sequence[tuple[int, int]] = (),
    followed: bool = False,
    without_icrc: str | None = None,
) -> list[dict[str, str]]:
    """Rows with `kind` and `detail`, from what the core found.

    `looks`: how often each packet of some segments is there, of which one look was followed.
    `followed`: packets with wrong ICRCs were followed.
    `without_icrc`: how packets lack the ICRC, with which they were read.
    """
    evidence, read = raw["evidence"], raw["input"]
    rows: list[tuple[str, str]] = []
    if evidence["moved"]:
        rows.append((
            "unsorted",
            f"{evidence['moved']} records follow one with a later time: they were sorted",
        ))  # fmt: skip
    if evidence["clock_steps"]:
        rows.append((
            "clock_step",
            f"times go back by more than a second {evidence['clock_steps']} time(s): a clock was "
            "set, or captures were concatenated",
        ))  # fmt: skip
    rows += [("clock_offset", text) for text in _clocks(evidence, names, offsets_ns)]
    rows += [("disjoint", text) for text in _disjoint(evidence, names)]
    rows += _copies(evidence, looks)
    rows += _without_icrc(without_icrc, evidence["without_icrc"])
    if evidence["sampled"]:
        rows.append((
            "sampled",
            f"this looks sampled: about one of {evidence['sampled']} packets was captured, and "
            "nothing is concluded from those that are missing",
        ))  # fmt: skip
    if evidence["icrcs_all_wrong"] and not evidence["without_icrc"]:
        detail = _all_wrong(evidence["icrcs_all_wrong"], followed=followed)
        rows.append(("icrcs_all_wrong", detail))
        rows += [
            (
                "other_port",
                f"packets to UDP port {port} have a BTH, and a wrong ICRC like all others (a "
                f"responder that answers to the source port?): --port {port} analyses them",
            )
            for port in evidence["icrcs_all_wrong"]["ports"]
        ]
    if read["cut_headers"]:
        rows.append((
            "cut_headers",
            f"{read['cut_headers']} RoCE packet(s) were cut before the end of the BTH, and are not "
            f"decoded: capture at least {evidence['snap_needed']} bytes of each (tcpdump -s); 128 "
            "have the RETH and AETH too",
        ))  # fmt: skip
    if evidence["unknown_reads"]:
        rows.append((
            "snapped_reads",
            f"{evidence['unknown_reads']} READs were captured without their length: which "
            "responses belong to them, and what was lost after them, cannot be checked",
        ))  # fmt: skip
    if evidence["midway"]:
        rows.append((
            "mid_traffic",
            f"{evidence['midway']} connection(s) began before the capture: the requests of their "
            "first responses were not captured",
        ))  # fmt: skip
    if read["roce_fragments"]:
        kind = "fragments" if evidence["fragmented"] else "reassembled"
        rows.append((kind, _fragments(evidence, read)))
    if raw["connections_unreported"]:
        rows.append(
            ("unlisted", _sentence_on_unlisted(raw["connections_unreported"], raw["unlisted"]))
        )
    for row in read["not_looked_into"]:
        kind = "link_type" if row["kind"] == "link_type" else "not_looked_into"
        rows.append((kind, not_looked_into(row)))
    for port, count in raw["roce"]["other_ports"].items():
        rows.append((
            "other_port",
            f"packets to UDP port {port} have a BTH and a correct ICRC ({count} verified): "
            f"--port {port} analyses them",
        ))  # fmt: skip
    seen = raw["roce"]["packets"], raw["roce"]["other_ports"], read["cut_headers"]
    if not any(seen) and not read["roce_fragments"]:
        rows.append(("no_roce", "no packet is RoCE; --port names other UDP ports than 4791"))
    return [{"kind": kind, "detail": detail} for kind, detail in rows]
