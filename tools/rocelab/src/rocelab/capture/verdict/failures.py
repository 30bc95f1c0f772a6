# SPDX-License-Identifier: GPL-2.0-or-later
"""What ended a connection, or kept it from being made; and captures that show nothing of delays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from rocelab import units
from rocelab.capture.verdict.connections import all_connections
from rocelab.capture.verdict.faults import duration
from rocelab.capture.verdict.line import Kind, Line

_ADVICE = {
    "retry-exceeded": "Is {peer} alive and reachable (rping, UDP port 4791 in its firewall)? ping "
    "-M do -s 4172 {peer} tells whether large packets pass.",
    "nak": "Check address, length, rkey and access flags of what {peer} refused; its driver's log "
    "and the completion's status say more.",
    "cm-rejected": "Is the server listening on that port, with this GID type? cma_roce_mode shows "
    "it.",
    "cm-unanswered": "Does {peer} have an RDMA device with this address (rdma link), and is UDP "
    "port 4791 open on the way?",
    "icrc-bad": "Receivers drop these packets: correct how {peer} computes the ICRC, or what "
    "changes its packets on the way.",
}
_NETS = {
    "v1": "RoCE v1",
    "v2_ipv4": "RoCE v2 over IPv4",
    "v2_ipv6": "RoCE v2 over IPv6",
    "infiniband": "InfiniBand",
}
_MAX_COMPARED = 64
"""Connections of which one end sends in vain."""
_CAUSES = {
    "retry-exceeded": "gave_up",
    "nak": "refused",
    "cm-rejected": "rejected",
    "cm-unanswered": "unanswered",
    "icrc-bad": "wrong_icrc",
}


def lines(result: dict[str, Any]) -> Iterator[Line]:
    """Return a line for each rule that tells of a failure, and one for all other errors."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in result["findings"]:
        rule = row["rule"]
        if rule == "icrc-bad" and "bytes changed after" in row["detail"]:
            continue
        if rule in _CAUSES:
            groups.setdefault(rule, []).append(row)
        elif row["severity"] == "error":
            groups.setdefault("", []).append(row)
    for rule, rows in groups.items():
        yield _violations(rows) if not rule else _line(result, rule, rows)


def _line(result: dict[str, Any], rule: str, rows: list[dict[str, Any]]) -> Line:
    first = rows[0]
    connections = {row["connection"] for row in rows if row["connection"] is not None}
    known = {one["id"]: one for one in all_connections(result)}
    some = [known[number] for number in connections if number in known]
    peer = _peer(rule, known.get(first["connection"]))
    count = sum(row["count"] for row in rows)
    more = f" ({units.integer(count)} in all)" if count > 1 else ""
    detail = first["detail"][:1].upper() + first["detail"][1:]
    if rule == "nak":
        reason = first["detail"].rpartition(": ")[2].replace("_", " ")
        detail = f"{peer or 'The responder'} refuses a request: {reason}"
    advice = _ADVICE[rule].format(peer=peer or "the peer")
    if rule == "retry-exceeded" and (types := _other_gid_types(some)):
        detail += f"; {types}"
        advice = (
            "Choose GIDs of one type on both ends: rdma_cm's default_roce_mode, perftest -x; "
            "/sys/class/infiniband/*/ports/*/gid_attrs/types lists them."
        )
    lost = sum(
        min(sum(cost["ns"] for cost in way["costs"]), duration(one))
        for one in some
        for way in one["directions"]
        if rule == "retry-exceeded"
    )
    return Line(
        cause=_CAUSES[rule],
        kind="failure",
        what=f"{detail}{more}.",
        advice=advice,
        certainty="possible" if all(row["ambiguous"] for row in rows) else "certain",
        where=peer,
        connections=connections,
        worst=first["connection"],
        count=count,
        lost_ns=lost,
        of_ns=sum(duration(one) for one in some),
        # who gave up had waited for its timeouts
        timeouts=count if rule == "retry-exceeded" else 0,
        timeout_ns=lost,
        frames=[(row["file"], row["packet"]) for row in rows if row["packet"]],
    )


def _other_gid_types(connections: list[dict[str, Any]]) -> str:
    """Words for two ends that each send in vain at once, in other encapsulations; else empty."""
    one_way = [one for one in connections if len(one["directions"]) == 1]
    for one, other in combinations(one_way[:_MAX_COMPARED], 2):
        at_once = one["first_ns"] <= other["last_ns"] and other["first_ns"] <= one["last_ns"]
        if one["net"] != other["net"] and at_once:
            names = units.listing([_NETS[row["net"]] for row in (one, other)])
            return (
                f"meanwhile {other['a']['address']} sends in vain, too: the two ends may be each "
                f"other's peers and use GIDs of different types ({names})"
            )
    return ""


def _peer(rule: str, connection: dict[str, Any] | None) -> str | None:
    """The end that is to be looked at."""
    if connection is None:
        return None
    ways = connection["directions"]
    if rule == "retry-exceeded":
        # whoever was sent to most in vain
        sender = max(ways, key=lambda way: sum(cost["ns"] for cost in way["costs"]))["from"]
        return str(connection["b" if sender == "a" else "a"]["address"])
    if rule == "nak":
        sender = max(ways, key=lambda way: sum(way["naks"].values()))["from"]
        return str(connection[sender]["address"])
    return None


def _violations(rows: list[dict[str, Any]]) -> Line:
    rules = dict.fromkeys(row["rule"] for row in rows)
    first = rows[0]
    return Line(
        cause="violation",
        kind="failure",
        what=f"Packets break the specification ({units.listing(list(rules))}), first: "
        f"{first['detail']}.",
        advice="docs/checks says what each rule means; receivers may drop such packets in silence.",
        connections={row["connection"] for row in rows if row["connection"] is not None},
        worst=first["connection"],
        count=sum(row["count"] for row in rows),
        frames=[(row["file"], row["packet"]) for row in rows if row["packet"]],
    )


_BLIND = {
    "sampled": "Capture all packets (no sampling at the mirror port), or several times as fast.",
    "fragments": "Make the path MTU of the queue pairs fit every link: ip link show on each hop; "
    "1024 fits an MTU of 1500.",
    "mirrored": "Save the stream to a file and analyze that: copies are dropped then.",
    "other_port": "Give rocelab analyze that --port.",
    "link_type": "Capture on an Ethernet interface, or on any (-i any).",
    "not_looked_into": "If RoCE is in it, capture behind the device that adds that header.",
    "cut_headers": "Capture with that snap length (tcpdump -s).",
    "no_roce": "Check the interface, and that the traffic passes it: tcpdump -i IF udp port 4791.",
}


def unseen(result: dict[str, Any]) -> Iterator[Line]:
    """Return a line for each condition that hides what happened."""
    for row in result["conditions"]:
        if advice := _BLIND.get(row["kind"]):
            kind: Kind = "failure" if row["kind"] == "fragments" else "capture"
            yield Line(cause=row["kind"], kind=kind, what=_sentence(row["detail"]), advice=advice)
    yield from lines(result)


def odd(result: dict[str, Any]) -> Iterator[Line]:
    """Return a line if no ICRC is right, and one for fragments that were put together."""
    for row in result["conditions"]:
        if row["kind"] == "reassembled":
            yield Line(
                cause="fragments",
                kind="fault",
                what=_sentence(row["detail"]),
                advice=_BLIND["fragments"],
                count=result["input"]["roce_fragments"],
            )
        if row["kind"] == "icrcs_all_wrong":
            yield Line(
                cause="wrong_icrc",
                kind="fault",
                what=_sentence(row["detail"]),
                advice="Receivers that check ICRCs would drop all of these packets.",
            )


def _sentence(detail: str) -> str:
    return f"{detail[:1].upper()}{detail[1:]}."
