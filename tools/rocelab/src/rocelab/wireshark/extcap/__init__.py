# SPDX-License-Identifier: GPL-2.0-or-later
"""The program behind tools/wireshark/extcap/rocelab: Wireshark's extcap protocol.

Wireshark asks for interfaces, link types and options, and then has one captured into a pipe
(doc/extcap.adoc in its sources). What goes to standard error, with an exit status that is not 0, it
shows in a dialog.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rocelab.conditions import system_error
from rocelab.errors import ExitCode, RocelabError, UsageError
from rocelab.version import VERSION
from rocelab.wireshark.extcap import interfaces, options, stream


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message, cause="Wireshark calls this program, not a person")


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    # no abbreviations: later Wiresharks may ask for what we do not know
    parser = _Parser(prog="rocelab", allow_abbrev=False, description=__doc__)
    parser.add_argument("--extcap-interfaces", action="store_true")
    parser.add_argument("--extcap-interface", default="")
    parser.add_argument("--extcap-dlts", action="store_true")
    parser.add_argument("--extcap-config", action="store_true")
    parser.add_argument("--extcap-version", nargs="?")
    parser.add_argument("--extcap-capture-filter", default="")
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--fifo", type=Path)
    options.add(parser)
    known, _ = parser.parse_known_args(words)
    return known


def _work(words: Sequence[str]) -> int:
    arguments = _arguments(words)
    if arguments.extcap_interfaces:
        print(f"extcap {{version={VERSION}}}{{display=rocelab}}")
        for interface in interfaces.all_interfaces():
            print(f"interface {{value={interface.value}}}{{display={interface.title}}}")
        return ExitCode.OK
    if arguments.extcap_dlts:
        print("dlt {number=1}{name=EN10MB}{display=Ethernet}")
        return ExitCode.OK
    if arguments.extcap_config:
        print(options.sentences(interfaces.find(arguments.extcap_interface)))
        return ExitCode.OK
    if arguments.extcap_capture_filter:
        raise UsageError(
            "rxedump has no capture filters",
            cause=f"{arguments.extcap_capture_filter!r} was given as one",
            action="Choose queue pair, direction and opcodes in the interface's options.",
        )
    if arguments.capture and arguments.fifo:
        interface = interfaces.find(arguments.extcap_interface)
        return stream.capture(interface, options.rxedump(arguments, interface), arguments.fifo)
    # a capture filter that is checked before a capture: there is none, and that is right
    return ExitCode.OK if arguments.extcap_interface else ExitCode.USAGE


def main(words: Sequence[str]) -> int:
    """Answer Wireshark; gives the exit status."""
    try:
        return _work(words)
    except (RocelabError, OSError) as caught:
        error = (
            caught if isinstance(caught, RocelabError) else system_error(caught, "cannot capture")
        )
        for prefix, text in (("", error.what), ("cause: ", error.cause), ("", error.action)):
            if text:
                print(prefix + text, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
