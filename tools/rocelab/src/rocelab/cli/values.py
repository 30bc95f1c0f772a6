# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn the words of a command line into values without importing pydantic.

typer has pydantic convert every value, and importing that takes longer than analyzing a short
capture. What is plain is converted here. Whatever is not goes to typer, which also says what is
wrong with it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, get_args, get_origin

import typer.core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

if TYPE_CHECKING:
    from typer._click import Context
    from typer.models import ParameterInfo

_INTEGER = re.compile(r"-?[0-9]{1,18}")


class _UnusualError(Exception):
    """A value that typer must look at."""


def install() -> None:
    """Put this conversion before typer's, for every parameter."""
    vars(typer.core)["build_runtime_param"] = _for_parameter


def _for_parameter(descriptor: TypeDescriptor) -> RuntimeParam:
    return _Conversion(descriptor.parameter_info, descriptor.annotation, descriptor)


@dataclass(frozen=True)
class _Conversion(RuntimeParam):
    descriptor: TypeDescriptor

    def _coerce_value(
        self, value: object, param: typer.core._TyperParameter, ctx: Context
    ) -> object:
        """Return the value in the parameter's type; raises typer's BadParameter."""
        try:
            return _converted(value, self.annotation, self.parameter_info)
        except _UnusualError:
            return build_runtime_param(self.descriptor).coerce(value, param=param, ctx=ctx)


def _converted(value: object, annotation: object, info: ParameterInfo) -> object:
    if info.parser is not None or info.clamp:
        raise _UnusualError
    if get_origin(annotation) is list and isinstance(value, list | tuple):
        return [_converted(one, get_args(annotation)[0], info) for one in value]
    if annotation is bool and isinstance(value, bool):
        return value
    if annotation is int:
        return _integer(value, info)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _member(value, annotation)
    if annotation in (str, Path) and isinstance(value, str) and _is_unicode(value):
        return value if annotation is str else _path(value, info)
    raise _UnusualError


def _is_unicode(text: str) -> bool:
    """Whether the text has no bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(value: str, info: ParameterInfo) -> Path:
    checked = info.exists or info.writable or info.resolve_path or info.allow_dash or info.path_type
    if checked or not info.file_okay or not info.dir_okay or "\0" in value:
        raise _UnusualError
    path = Path(value)
    if info.readable and path.exists() and not os.access(path, os.R_OK):
        raise _UnusualError
    return path


def _integer(value: object, info: ParameterInfo) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    # a flag is no number
    if not isinstance(value, int) or isinstance(value, bool):
        raise _UnusualError
    if info.min is not None and value < info.min:
        raise _UnusualError
    if info.max is not None and value > info.max:
        raise _UnusualError
    return value


def _member(value: object, choices: type[Enum]) -> Enum:
    for choice in choices:
        if value is choice or value == choice.value:
            return choice
    raise _UnusualError
