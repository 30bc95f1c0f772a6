#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run rdma-core's Python tests on a node, each in a separate process.

One process per test, because some crash libibverbs on any driver. The processes are forked after
the imports, which take seconds under emulation. Prints a line of JSON per test:
{"test": id, "outcome": "pass" | "fail" | "error" | "skip" | "crash" | "timeout"}.

The kernel log gets a line before each test, which says in which of them a complaint came.

Usage: pyverbs_each.py DEVICE GID_INDEX SECONDS [TEST_ID...]  (in rdma-core's folder `tests`;
without ids, every test)
"""

import importlib
import json
import os
import resource
import signal
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

DEVICE, GID, LIMIT = sys.argv[1], sys.argv[2], float(sys.argv[3])
WANTED = set(sys.argv[4:])
STATUS = {0: "pass", 10: "fail", 11: "error", 12: "skip"}


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Return all tests of a suite."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def run_child(case: unittest.TestCase) -> None:
    """Run one test and exit with its outcome."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result = unittest.TestResult()
    case.run(result)
    outcome = "pass"
    if result.errors:
        outcome = "error"
    elif result.failures:
        outcome = "fail"
    elif result.skipped:
        outcome = "skip"
    os._exit({name: code for code, name in STATUS.items()}[outcome])


def outcome_of(pid: int) -> str:
    """Wait for a child, within the limit; kill its process group, since some tests fork."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return "crash"
            return STATUS.get(os.WEXITSTATUS(status), "crash")
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "timeout"


def main() -> None:
    """Run all tests that a software device can pass."""
    here = Path.cwd()
    sys.path[:0] = [str(here), str(here.parent)]
    from args_parser import parser

    sys.argv[1:] = ["--dev", DEVICE, "--gid", GID]
    parser.parse_args()
    names = [
        name[:-3]
        for name in sorted(path.name for path in here.iterdir())
        # other vendors' tests look for their own hardware and skip
        if name.startswith("test_")
        and name.endswith(".py")
        and not name.startswith(("test_mlx5", "test_efa", "test_cuda"))
    ]
    for name in names:
        if WANTED and not any(test.startswith(f"tests.{name}.") for test in WANTED):
            continue
        module = importlib.import_module(f"tests.{name}")
        for case in cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if WANTED and case.id() not in WANTED:
                continue
            Path("/dev/kmsg").write_text(f"rocelab-test: {case.id()}\n")
            pid = os.fork()
            if pid == 0:
                os.setsid()
                run_child(case)
            print(json.dumps({"test": case.id(), "outcome": outcome_of(pid)}), flush=True)


if __name__ == "__main__":
    main()
