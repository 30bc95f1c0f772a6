# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: manual page, exit codes, and error messages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from command_line import in_process as rocelab
from requirements import missing
from rocelab.cli import manpage
from rocelab.cli.app import EXIT_CODES, app
from rocelab.errors import ExitCode
from rocelab.terminal import console

ROOT = Path(__file__).parents[3]


def test_the_manual_page_has_the_help_of_each_command() -> None:
    page = manpage.page()
    assert re.match("<!-- .* -->\n# rocelab\\(1\\)\n\n## NAME\n\nrocelab \N{EN DASH} [a-z]", page)
    sections = re.findall(r"^## rocelab (.*)$", page, re.MULTILINE)
    assert set(app.list_commands(click.Context(app))) <= set(sections)
    assert "hosts prepare" in sections
    text = " ".join(page.split())
    for words in sections:
        help_text = rocelab(*words.split(), "--help").stdout.split()
        assert " ".join(help_text) in text
    blocks = page.split("```")[1::2]
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 80


def test_the_help_shows_examples_and_each_command_in_one_group() -> None:
    text = rocelab("--help").stdout
    sections = re.split(r"^([A-Z][\w-]+):\n", text, flags=re.MULTILINE)
    assert sections[1::2] == ["Options", "Captures", "Nodes", "Measure", "Judge", "Set-up"]
    named = re.findall(r"^  ([a-z]+) ", "".join(sections[4::2]).split("Exit")[0], re.MULTILINE)
    assert sorted(named) == sorted(app.list_commands(click.Context(app)))
    assert len(re.findall(r"^    rocelab \w+ ", sections[0], re.MULTILINE)) == 3


_IMPORTED = """
import sys
from rocelab.cli import main
sys.argv[0] = "rocelab"
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
_HEAVY = {"altair", "asyncio", "jinja2", "polars", "secrets", "tomllib", "vl_convert"}
"""Libraries that take longer to import than most commands to run."""
_FOR_NO_HELP = {"dataclasses", "json", "pathlib", "rich", "traceback"}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (["--help"], _HEAVY | _FOR_NO_HELP | {"rocelab.kernel_lines", "rocelab.metrics"}),
        (["analyze", "captures/pfc.pcap"], _HEAVY | {"rocelab.metrics"}),
        (["analyze", "--json", "captures/pfc.pcap"], _HEAVY | {"rich", "rocelab.metrics"}),
        (["analyze", "--threads", "1", "--profile", "gbn", "captures/pfc.pcap"], _HEAVY),
    ],
)
def test_a_command_imports_only_what_it_needs(words: list[str], without: set[str]) -> None:
    """Start-up is import time: what a command does not need must not be imported."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        # what measures coverage imports much of it itself
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
        timeout=300,
        check=False,
    )
    imported = set(done.stderr.split())
    assert "rocelab.cli.app" in imported, done.stderr
    assert not imported & without


def test_every_exit_code_is_documented() -> None:
    """The table of exit codes is complete."""
    assert set(EXIT_CODES) == set(ExitCode)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["bogus"], 2, "No such command"),
        (["up", "--mtu", "5"], 2, "--mtu"),
        (["up", "--line", "5.4"], 2, "no kernel line '5.4'"),
        (["doctor", "--line", "5.4"], 2, "no kernel line '5.4'"),
        (["up", "--name", "../x"], 2, "cannot be a testbed's name"),
        (["up", "--name", "huge", "--memory", "99999999"], 3, "MiB of memory"),
        (["ssh", "--name", "nowhere", "n1"], 2, "no testbed nowhere is up"),
        (["down", "--name", "nowhere"], 2, "no testbed nowhere is up"),
        (["exec"], 2, "Missing argument"),
        (["exec", "--on", "n0", "--", "true"], 2, "names no nodes"),
        (["exec", "--line", "5.4", "--", "true"], 2, "no kernel line '5.4'"),
        (["exec", "--ready", "tcp:5", "--", "true"], 2, "--ready needs --server"),
        (["exec", "--server", "true", "--ready", "5", "--", "true"], 2, "tcp:PORT"),
        (["exec", "--server", "true", "--on", "n2", "--", "true"], 2, "--on cannot be used"),
        (["exec", "--server", "'x", "--", "true"], 2, "a quote has no end"),
        (["exec", "--watch", "--on", "all", "--", "true"], 2, "what is watched runs on n1"),
        (["exec", "--loss", "1", "--capture", "x", "--", "true"], 2, "what is watched runs on n1"),
        (["exec", "--faults", "/nosuch", "--", "true"], 2, "cannot read plan '/nosuch'"),
        (["exec", "--loss", "500001", "--", "true"], 2, "0<=x<=500000"),
        (["exec", "--server", " ", "--", "true"], 2, "--server is empty"),
        (["exec", "--tty", "--on", "2", "--", "true"], 2, "--tty needs a terminal"),
        (["exec", "--timeout", "0", "--", "true"], 2, "--timeout"),
        (["run"], 2, "give either a PLAN or --resume RUN"),
        (["run", "no-such-plan"], 2, "no-such-plan"),
        (["run", "--resume", "/nonexistent"], 2, "/nonexistent"),
        (["report", "/nonexistent"], 2, "/nonexistent"),
        (["analyze", "/nonexistent"], 2, "/nonexistent"),
    ],
)
def test_bad_input(words: list[str], code: int, says: str) -> None:
    """Bad input gives one message, the documented exit code and no traceback."""
    answer = rocelab(*words)
    assert answer.returncode == code, answer.stderr
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "internal error" not in answer.stderr


@pytest.mark.parametrize("words", [{}, {"COMP_WORDS": "rocelab", "COMP_CWORD": "x"}])
def test_completion_that_no_shell_asks_for(
    monkeypatch: pytest.MonkeyPatch, words: dict[str, str]
) -> None:
    for name, value in {"_ROCELAB_COMPLETE": "bash_complete", **words}.items():
        monkeypatch.setenv(name, value)
    answer = rocelab()
    assert answer.returncode == 2
    assert "Unset _ROCELAB_COMPLETE" in answer.stderr


@pytest.mark.parametrize("asked", ["0", "+0", " 0", "99999999999"])
def test_no_number_of_threads_for_polars(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """It panics with none, and starts any number of them."""
    monkeypatch.setenv("POLARS_MAX_THREADS", asked)
    answer = rocelab("show", "nothing")
    assert answer.returncode == 2
    assert "Unset it, or set it to a number from 1 to 999" in answer.stderr


def test_too_little_disk(tmp_path: Path) -> None:
    """`rocelab up` refuses a full disk before it boots anything."""
    mount = f"mount -t tmpfs -o size=1M tmpfs {tmp_path}"
    command = f"{mount} && exec {sys.executable} -m rocelab up --name full"
    namespace = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*namespace, mount], capture_output=True, check=False).returncode:
        missing("user and mount namespaces are off on this machine")
    answer = subprocess.run(
        [*namespace, command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert answer.returncode == 3, answer.stderr
    assert "MiB free" in answer.stderr
    assert "Free some space" in answer.stderr


def test_version_is_that_of_the_package() -> None:
    """The command and the package's metadata agree."""
    declared = re.search(
        r'^version = "(.*)"', (ROOT / "tools/rocelab/pyproject.toml").read_text(), re.MULTILINE
    )
    assert declared
    assert rocelab("--version").stdout == f"rocelab {declared[1]}\n"


def test_control_characters_are_made_visible() -> None:
    """Untrusted text cannot control the terminal."""
    assert console.clean("a\x1b[2Jb\rc\x9bd\u202ee\n\tf") == "a\\x1b[2Jb\\x0dc\\x9bd\\x202ee\n\tf"


@pytest.mark.parametrize("command", ["mmdebstrap", "qemu-system-x86_64"])
def test_doctor_names_a_missing_program(command: str, tmp_path: Path) -> None:
    """doctor names the missing program and its package, and exits with 3."""
    answer = subprocess.run(
        [sys.executable, "-m", "rocelab", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert answer.returncode == 3
    assert f"{command} is not installed" in answer.stdout
    assert "apt-get install" in answer.stdout
