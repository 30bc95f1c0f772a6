# SPDX-License-Identifier: GPL-2.0-or-later
"""Each rule has a sample that breaks it: it is found at that packet, and nothing else is found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from corpus import CAPTURES
from rocelab import capture

ROOT = Path(__file__).resolve().parents[3]

Found = tuple[str, int, bool]
"""Rule, packet, ambiguous."""

BREACHES: dict[str, list[Found]] = {
    "ack-regress": [("ack-regress", 6, True)],
    "ack-unsent": [("ack-unsent", 3, False)],
    "bth-version": [("bth-version", 1, False)],
    "cm-rejected": [("cm-rejected", 2, False), ("cm-rejected", 4, False)],
    "cm-unanswered": [("cm-unanswered", 1, True)],
    "cnp-format": [("cnp-format", at, False) for at in (2, 3, 4, 5)],
    "length": [("length", 1, False)],
    "migreq": [("migreq", 2, False)],
    "nak-psn": [("nak-psn", 5, False)],
    "qpn-reuse": [("qpn-reuse", 3, True)],
    "read-depth": [("read-depth", 7, False)],
    # the READ is issued again from a response that was lost
    "read-reissue": [("read-reissue", 4, False), ("loss", 4, False)],
    "read-replay": [("read-replay", 4, True)],
    # each of the retransmissions may have had its own reason
    "retry-exceeded": [*(("timeout", at, True) for at in (4, 5, 6)), ("retry-exceeded", 6, True)],
    # the NAK itself reports the loss
    "retransmit-start": [("loss", 3, False), ("retransmit-start", 4, False)],
    "udp-source-port": [("udp-source-port", 3, False)],
}


@pytest.mark.parametrize("name", BREACHES)
def test_only_the_injected_breach_is_found(name: str) -> None:
    result = capture.analyze([str(CAPTURES / f"{name}.pcap")]).result
    findings = [(row["rule"], row["packet"], row["ambiguous"]) for row in result["findings"]]
    assert findings == BREACHES[name]
    assert result["findings_total"] == len(findings)
    assert result["icrc"]["bad"] == 0


@pytest.mark.parametrize("rule", BREACHES)
def test_the_rule_is_found_in_no_other_sample(rule: str) -> None:
    for golden in (CAPTURES / "golden").glob("*.json"):
        # cases have their whole answer in test_cases.py
        if golden.name == f"{rule}.pcap.json" or golden.name.startswith("case-"):
            continue
        rules = {row["rule"] for row in json.loads(golden.read_text())["findings"]}
        assert rule not in rules, golden.name


CHECKS = (ROOT / "docs/checks/README.md").read_text()
SECTIONS = dict(re.findall(r"^### ([\w-]+)\n(.*?)(?=^### |\Z)", CHECKS, re.MULTILINE | re.DOTALL))


def test_the_table_lists_each_section_with_a_severity() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(#\1\) \| (?:error|warning|note)(?:, gbn)? \| \w", CHECKS, re.MULTILINE
    )
    assert rows == list(SECTIONS)


@pytest.mark.parametrize("rule", SECTIONS)
def test_each_rule_says_proof_and_clause(rule: str) -> None:
    for item in ("Proof", "Specification"):
        assert re.search(rf"^- {item}: \w.{{4,}}", SECTIONS[rule], re.MULTILINE), item


def test_a_legal_read_reissue_is_no_error() -> None:
    """A READ may be reissued from its middle, and its responses repeated."""
    (row,) = capture.analyze([str(CAPTURES / "read-reissued.pcap")]).result["findings"]
    assert (row["rule"], row["severity"]) == ("loss", "warning")


def test_go_back_n_rules_become_errors() -> None:
    options = capture.Options(go_back_n=True)
    result = capture.analyze([str(CAPTURES / "retransmit-start.pcap")], options).result
    severities = {row["rule"]: row["severity"] for row in result["findings"]}
    assert severities == {"loss": "warning", "retransmit-start": "error"}
