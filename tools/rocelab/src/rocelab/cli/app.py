# SPDX-License-Identifier: GPL-2.0-or-later
"""The command tree, and the only place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys

import click
from click.exceptions import Exit

from rocelab import conditions
from rocelab.cli import completion, interruption
from rocelab.cli.commands import Commands
from rocelab.errors import ExitCode, RocelabError, code_of_signal
from rocelab.terminal import console, streams
from rocelab.version import VERSION

EXIT_CODES = {
    ExitCode.OK: "success",
    ExitCode.FINDINGS: "the command worked and found errors in its input",
    ExitCode.USAGE: "an option, a plan or a capture cannot be used",
    ExitCode.MISSING: "this machine lacks a program, memory or disk space",
    ExitCode.TESTBED: "a node did not boot, died or does not answer",
    ExitCode.CELL: "the run finished, but at least one cell failed",
    ExitCode.INTERNAL: "a bug in rocelab",
    ExitCode.TIMED_OUT: "exec: the command was ended when its time was over",
    ExitCode.NOT_RUN: "exec: rocelab failed; other codes are the command's own",
    ExitCode.NOT_EXECUTABLE: "exec: the command cannot run on the node",
    ExitCode.NOT_FOUND: "exec: the node has no such command",
    ExitCode.HUNG_UP: "ended by SIGHUP; finished cells are kept",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C; finished cells are kept",
    ExitCode.TERMINATED: "ended by SIGTERM; finished cells are kept",
}

# \b tells click not to rewrap these lines
_EPILOG = "\b\nExit codes:\n" + "\n".join(
    f"  {int(code):>3}  {meaning}" for code, meaning in EXIT_CODES.items()
)

_HELP = """See where every microsecond of a Soft RoCE packet goes.

\b
Examples:
  rocelab analyze roce.pcap       what broke in a capture
  rocelab run demo                RoCE and TCP between two nodes
  rocelab ab instrumented ./mine  what your patches cost"""


@click.group(
    "rocelab",
    cls=Commands,
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 80,
        "show_default": True,
    },
)
@click.version_option(VERSION, message="%(prog)s %(version)s", help="Print the version.")
@click.option(
    "--source",
    type=click.Path(),
    metavar="DIR",
    help="Build and take driver, probes and images from this checkout (also ROCELAB_SOURCE), not "
    "from that of the installation.",
)
def app(source: str | None) -> None:
    """Hold the subcommands."""
    if source is not None:
        # help needs neither
        from pathlib import Path

        from rocelab.testbed import artifacts

        artifacts.use_source(Path(source))


_NO_THREAD = "can't start new thread"
_PANIC = "PanicException"
"""What PyO3 makes of a panic in Rust: each extension module has another class of this name."""


def main() -> None:
    """Run the command line; every error ends in a message and a documented exit code."""
    if conditions.is_memory_limited():
        from rocelab.cli import limited_memory

        ended = limited_memory.fork()
        if ended is not None:
            console.leave(ended)
    code: int = ExitCode.INTERRUPTED
    try:
        try:
            interruption.install()
            code = _run()
            try:
                streams.flush()
            except OSError as error:
                code = _show_error(error)
        except KeyboardInterrupt:
            # it came while the command's end was shown
            code = _show_interruption(interruption.what())
        interruption.ignore()
    except KeyboardInterrupt:
        # it came when all was done
        interruption.ignore()
    console.leave(code)


def _run() -> int:
    try:
        conditions.keep_bytecode_whole()
        conditions.check_descriptors()
        conditions.check_memory()
        conditions.check_polars_threads()
        streams.install()
        code = completion.answer(app)
        return _call() if code is None else code
    except click.ClickException as error:
        # click's usage errors print themselves
        error.show()
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return _show_interruption(interruption.what())
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK
    except Exception as error:
        return _show_error(error)
    except BaseException as error:
        # a library's panic, which is no Exception
        if type(error).__name__ != _PANIC:
            raise
        return _show_error(error)


def _call() -> int:
    """Call the command that the command line names; return its exit code."""
    try:
        with app.make_context(completion.PROGRAM, sys.argv[1:]) as context:
            app.invoke(context)
    except Exit as end:
        return end.exit_code
    return ExitCode.OK


def _show_interruption(by: str) -> int:
    """Show what interrupted this process, or why Slurm did; return the exit code."""
    from rocelab.testbed.slurm import allocation

    if why := allocation.why_ended(by):
        return _show_error(why)
    console.show_interruption(by)
    return code_of_signal(by)


def _show_error(error: BaseException) -> int:
    """Show an error, or the signal behind it, and return the exit code."""
    if interruption.is_behind(error):
        return _show_interruption(interruption.what())
    if isinstance(error, OSError) or type(error).__name__ == _PANIC:
        known = conditions.explain(error)
    elif isinstance(error, ModuleNotFoundError):
        known = conditions.without_extra(error)
    elif isinstance(error, MemoryError):
        known = conditions.out_of_memory()
    elif isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        known = conditions.without_threads()
    else:
        known = error if isinstance(error, RocelabError) else None
    if known is not None:
        console.show_error(known)
        return known.exit_code
    if os.environ.get("ROCELAB_DEBUG"):
        raise error
    console.show_bug(error)
    return ExitCode.INTERNAL
