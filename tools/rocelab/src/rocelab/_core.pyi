# SPDX-License-Identifier: GPL-2.0-or-later
"""The native module (crates/py)."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

VERSION: str

def opcodes() -> list[tuple[int, str]]: ...
def write_excerpt(
    path: str | PathLike[str],
    output: str | PathLike[str],
    *,
    ports: Sequence[int] = ...,
    icrc: bool = ...,
    captures: int = ...,
) -> None: ...
def count_frames(
    path: str | PathLike[str], *, control_ports: Sequence[int] = ...
) -> dict[str, int]: ...
def capture_start(path: str | PathLike[str]) -> int | None: ...
def trace_origin(path: str | PathLike[str]) -> str: ...

class Table:
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Analysis:
    def __init__(
        self,
        paths: Sequence[str],
        *,
        ports: Sequence[int] = ...,
        icrc: bool = ...,
        threads: int = ...,
        packets: bool = ...,
        messages: bool = ...,
        max_findings: int = ...,
        max_connections: int = ...,
        go_back_n: bool = ...,
        networks: Sequence[tuple[bytes, int]] = ...,
        time_ns: tuple[int, int] | None = ...,
        qpns: Sequence[int] = ...,
        opcodes: Sequence[int] | bytes = ...,
        connections: Sequence[int] = ...,
        offsets_ns: Sequence[int] = ...,
        looks: Sequence[tuple[int, int]] = ...,
        follow_corrupt: bool = ...,
        without_icrc: str | None = ...,
        excerpts: bool = ...,
    ) -> None: ...
    def step(self) -> bool: ...
    def append(self, path: str, *, head: bytes, growing: bool = ...) -> None: ...
    def stop(self) -> None: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def pending_packets(self) -> int: ...
    @property
    def pending_messages(self) -> int: ...
    def take_packets(self) -> Table: ...
    def take_messages(self) -> Table: ...
    def keep_packets(self) -> None: ...
    def packets(self) -> Table: ...
    def snapshot(self) -> dict[str, Any]: ...
    def finish(self) -> dict[str, Any]: ...
    def result(self, *, for_verdict: bool = ...) -> dict[str, Any]: ...
    def connections(self) -> Table: ...
    def findings(self) -> Table: ...

class Join:
    def __init__(
        self,
        wire: str,
        traces: Sequence[str],
        *,
        ports: Sequence[int] = ...,
        window: int = ...,
        packets: bool = ...,
    ) -> None: ...
    def step(self) -> bool: ...
    @property
    def pending_packets(self) -> int: ...
    def take_packets(self) -> Table: ...
    def finish(self) -> dict[str, Any]: ...

class Annotation:
    def __init__(
        self,
        wire: str,
        traces: Sequence[str],
        output: str,
        *,
        ports: Sequence[int] = ...,
        window: int = ...,
        threads: int = ...,
        go_back_n: bool = ...,
        looks: Sequence[tuple[int, int]] = ...,
        follow_corrupt: bool = ...,
        without_icrc: str | None = ...,
        sampled: bool = ...,
        verdict: Sequence[tuple[int, str]] = ...,
        comment: str | None = ...,
    ) -> None: ...
    def step(self) -> bool: ...
    def finish(self) -> dict[str, Any]: ...
