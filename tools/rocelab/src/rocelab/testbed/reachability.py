# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether nodes reach each other by TCP: bytes must get through, to a port that listens.

A reset proves nothing: it comes from a host on which nobody listens, and from a firewall that
rejects. So the node to be reached listens itself, with perl(1), which every Debian has. On a host
without it, a reset has to do.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from rocelab.errors import TestbedError
from rocelab.testbed.node import Node
from rocelab.testbed.node.parallel import at_once

_PROBE_SECONDS = 3
_START_SECONDS = 60
_LISTEN_SECONDS = "120"
"""After which a listener ends by itself."""
_UNUSED_PORT = "9"
"""discard"""
_RESET = "Connection refused"
_LISTENS = "listening on port "
# Its arguments: address, what to say, seconds. Its port is any that is free, as mpirun's.
_LISTEN = f"""
use Socket qw(:DEFAULT getaddrinfo getnameinfo :addrinfo);
my ($address, $token, $seconds) = @ARGV;
my ($wrong, $at) = getaddrinfo($address, 0, {{flags => AI_NUMERICHOST, socktype => SOCK_STREAM}});
die "$wrong\\n" if $wrong;
socket(my $server, $at->{{family}}, SOCK_STREAM, 0) or die "socket: $!\\n";
bind($server, $at->{{addr}}) or die "bind: $!\\n";
listen($server, 64) or die "listen: $!\\n";
my (undef, undef, $port) = getnameinfo(getsockname($server), NI_NUMERICHOST | NI_NUMERICSERV);
$| = 1;
print "{_LISTENS}$port\\n";
alarm $seconds;
while (accept(my $client, $server)) {{ syswrite $client, "$token\\n"; close $client; }}
"""
_IF_PERL = f"""
command -v perl >/dev/null || {{ echo "{_LISTENS}{_UNUSED_PORT}"; exit; }}
exec perl -e "$@"
"""
# Debian's bash runs ~/.bashrc in the first shell of a session over SSH, however slow that is.
_CONNECT = (
    *("env", "SHLVL=9", "timeout", str(_PROBE_SECONDS), "bash", "--norc", "-c"),
    'exec 3<>"/dev/tcp/$1/$2" && head -c 100 <&3',
    "bash",
)


def reaches(nodes: Sequence[Node], other: Node, address: str) -> list[str]:
    """Have each of `nodes` fetch some bytes from `other` at its `address` by TCP.

    Returns for each an empty text, or else what is wrong. Raises TestbedError when one of them does
    not answer.
    """
    token = secrets.token_hex(8)
    process = other.start(("sh", "-c", _IF_PERL, "sh", _LISTEN, address, token, _LISTEN_SECONDS))
    try:
        line = process.wait_for_line(_LISTENS, timeout=_START_SECONDS)
    except TestbedError as error:
        process.kill()
        return [f"it cannot listen there: {error.cause}"] * len(nodes)
    port = line.removeprefix(_LISTENS).strip()
    try:

        def one(node: Node) -> str:
            done = node.run((*_CONNECT, address, port), check=False)
            last = (done.stderr.strip().splitlines() or [f"no answer within {_PROBE_SECONDS} s"])[
                -1
            ]
            reached = done.stdout.strip() == token or (port == _UNUSED_PORT and _RESET in last)
            return "" if reached else last[-120:]

        return at_once(one, nodes)
    finally:
        process.kill()
