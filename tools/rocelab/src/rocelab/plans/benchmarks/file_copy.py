# SPDX-License-Identifier: GPL-2.0-or-later
"""A file over TCP (vsftpd and curl) and over RoCE (rdma-core's rcopy): command lines and output.

`put` transfers from the first node to the second, `get` back. curl sends and fetches; rcopy can
only send, so the second node runs it for a `get`. We time both with the client's clock, from its
start to its end. rcopy itself prints the seconds of the data alone,
in steps of 0.01 (show_perf in rdma-core's librdmacm/examples/rcopy.c). curl prints the time before
the transfer and the total time, to the microsecond.
"""

from __future__ import annotations

import re

from rocelab import metrics
from rocelab.plans.benchmarks import timed
from rocelab.plans.benchmarks.tool import (
    GET,
    Argv,
    Job,
    Measurement,
    Tool,
    Transfer,
    Value,
    bad_output,
)

SOURCE, TARGET = "out/file", "in/file"
"""The file in the transfer's folder, where it is sent from and where it arrives."""
NOBODY = "65534"
"""The user and the group that own nothing; their names differ between systems."""
EMPTY, CONFIG = "empty", "vsftpd.conf"

_CURL = re.compile(r"^curl (\d+) (\d+\.\d+) (\d+\.\d+) (\d+)$", re.MULTILINE)
_RCOPY = re.compile(r"(\d+) bytes in (\d+\.\d\d) seconds = ")
_STORED = "226"
"""FTP's reply to a complete transfer."""


def _ftp_server(job: Job) -> Argv:
    return ("vsftpd", f"{job.folder}/{CONFIG}")


def _ftp_client(job: Job) -> Argv:
    server = f"ftp://{job.server.ipv4}:{job.tcp_port}"
    if job.test.name == GET:
        size, arguments = "download", ("--output", f"{job.folder}/{TARGET}", f"{server}/{SOURCE}")
    else:
        size, arguments = (
            "upload",
            ("--upload-file", f"{job.folder}/{SOURCE}", f"{server}/{TARGET}"),
        )
    report = f"curl %{{size_{size}}} %{{time_pretransfer}} %{{time_total}} %{{response_code}}\\n"
    return (
        # -q: ignore the user's settings, which may name a proxy
        *("curl", "-q", "--silent", "--show-error", "--noproxy", "*", "--write-out", report),
        *arguments,
    )


def _ftp_config(job: Job) -> str:
    """Allow one session, on the data link, to put a file into one folder, or to get one file.

    There is no password.
    """
    writes = "NO" if job.test.name == GET else "YES"
    settings = {
        "listen": "YES",
        "listen_ipv6": "NO",
        "listen_address": job.server.ipv4,
        "listen_port": str(job.tcp_port),
        "background": "NO",
        "max_clients": "1",
        "anonymous_enable": "YES",
        "no_anon_password": "YES",
        "local_enable": "NO",
        "anon_root": job.folder,
        "write_enable": writes,
        "anon_upload_enable": writes,
        "anon_umask": "077",
        "xferlog_enable": "NO",
        # the sandbox forbids system calls of newer C libraries
        "seccomp_sandbox": "NO",
        "secure_chroot_dir": f"{job.folder}/{EMPTY}",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _ftp_parse(job: Job, stdout: str) -> Measurement:
    match = _CURL.search(stdout)
    if match is None:
        bad_output(job, "curl does not say what it sent")
    if match[4] != _STORED:
        bad_output(job, f"the FTP server answered {match[4]}")
    data = float(match[3]) - float(match[2])
    return _measurement(job, stdout, int(match[1]), data)


def _rcopy_server(job: Job) -> Argv:
    return ("rcopy", "-p", str(job.tcp_port))


def _rcopy_client(job: Job) -> Argv:
    there = f"{job.server.ipv4}:{job.folder}/{TARGET}"
    return ("rcopy", f"{job.folder}/{SOURCE}", there, "-p", str(job.tcp_port))


def _rcopy_parse(job: Job, stdout: str) -> Measurement:
    match = _RCOPY.search(stdout)
    if match is None:
        bad_output(job, "rcopy does not say what it sent")
    return _measurement(job, stdout, int(match[1]), float(match[2]), messages=1)


def _measurement(
    job: Job, stdout: str, sent: int, data_seconds: float, messages: int = 0
) -> Measurement:
    if sent != job.size:
        bad_output(job, f"it sent {sent} bytes")
    seconds = timed.seconds(job, stdout)
    # rcopy rounds
    if data_seconds < 0 or data_seconds > seconds + 0.01:
        bad_output(job, f"its data took {data_seconds} s of {seconds:.6f} s")
    values = [
        Value(metrics.BANDWIDTH, job.test.kind, job.size / seconds, "bytes/s"),
        Value(metrics.TRANSFER_TIME, "whole", seconds * 1e9, "ns"),
    ]
    if data_seconds:
        values.append(Value(metrics.TRANSFER_TIME, "data", data_seconds * 1e9, "ns"))
    return Measurement(tuple(values), job.size, messages=messages)


FTP = Tool(_ftp_server, _ftp_client, _ftp_parse, Transfer(by="tcp", user="ftp", config=_ftp_config))
RCOPY = Tool(
    *(_rcopy_server, _rcopy_client, _rcopy_parse),
    Transfer(by="rdma_cm", user=NOBODY, only_sends=True),
)
