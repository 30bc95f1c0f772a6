# SPDX-License-Identifier: GPL-2.0-or-later
"""Of a panic the reason is quoted, however long its stack is, and of reports the first."""

from __future__ import annotations

from rocelab.testbed.qemu.last_words import endless_reports, last_words

BOOT = [f"[    0.{n:06}] line {n}" for n in range(300)]
OOPS = "[  894.894000] Oops: general protection fault, probably for non-canonical address 0x1"
STACK = [f"[  894.895{n:03}]  frame_{n}+0xd2/0x100" for n in range(70)]
PANIC = "[  894.895767] Kernel panic - not syncing: Fatal exception in interrupt"


def test_a_console_without_a_panic_ends_with_its_last_lines() -> None:
    assert last_words(BOOT, 20) == BOOT[-20:]
    assert last_words([], 20) == []


def test_an_oops_is_quoted_from_its_first_line() -> None:
    said = last_words([*BOOT, OOPS, *STACK, PANIC, "[  894.9] Rebooting"], 20)
    assert said == [OOPS, *STACK[:19], "[51 lines left out]", PANIC]


def test_a_short_oops_is_whole() -> None:
    assert last_words([*BOOT, OOPS, *STACK[:5], PANIC], 20) == [OOPS, *STACK[:5], PANIC]


def test_a_complaint_from_long_before_the_panic_is_not_its_reason() -> None:
    console = ["[    0.1] WARNING: a test's", *BOOT, PANIC]
    assert last_words(console, 20) == [*BOOT[-20:], PANIC]


BUG = "[    0.003178] BUG: KASAN: wild-memory-access in rcu_is_watching+0x3b/0x60"
"""As a starved 7.3.4 printed it 27 times a second."""
REPORT = [BUG, *STACK[:30]]


def test_a_kernel_that_reports_without_end_is_known_by_its_first_report() -> None:
    assert endless_reports([*BOOT, *REPORT * 11, *STACK], 20) == REPORT[:20]


def test_a_kernel_that_goes_on_after_some_reports_boots() -> None:
    assert endless_reports([*BOOT, *REPORT * 10, *BOOT]) == []
    assert endless_reports([]) == []
