"""The version of the canonical JSON that is written, and the versions that can be read."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.codec.problems import Problem, shortened
from crosswalk.lazy import pattern
from crosswalk.text import json_type_name

FORMAT_VERSION: Final = "1.0"
"""The version of the canonical JSON that is written, as ``major.minor``.

A new optional key raises the minor number, and every reader of the same major number reads it.
Anything else raises the major number. A response without a version is a ``1.0`` one.
"""

READABLE_MAJORS: Final = ("1",)
_VERSION = pattern(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")


def check_version(version: Any) -> None:
    """Refuse a *version* whose documents this codec cannot read.

    Raises:
        Problem: it is malformed or its major number is unknown.
    """
    if version == FORMAT_VERSION:
        return
    readable = " or ".join(f"{major}.x" for major in READABLE_MAJORS)
    if type(version) is not str:
        raise Problem(
            f"expected a format version as a string (readable: {readable}), got {json_type_name(version)}",
            at=".format_version",
        )
    result = _VERSION.fullmatch(version)
    if result is None or result[1] not in READABLE_MAJORS:
        kind = "malformed" if result is None else "unknown"
        raise Problem(
            f"{kind} format version {shortened(version)!r} (readable: {readable})", at=".format_version"
        )
