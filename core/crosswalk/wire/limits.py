"""How much of a stranger's bytes Crosswalk is willing to hold."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["DEFAULT", "Limits"]

MIB = 2**20
GIB = 2**30


def _positive(limits: Limits, attribute: attrs.Attribute[int], value: Any) -> None:
    if type(value) is not int or value <= 0:
        raise ValueError(f"Limits.{attribute.name} must be a whole number above 0, got {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """
    Bound what one stream or body may cost, each bound with an error of its own.

    The defaults are far above anything a model writes: they stop a broken or hostile server,
    never an answer. No limit can be switched off; a larger number does the same.

    Attributes:
        line_bytes: the longest line, frame or single body, in bytes; 64 MiB. Passing it raises
            :class:`crosswalk.errors.LineTooLongError`.
        depth: the deepest nesting of arrays and objects in one event, where ``[]`` is 1 deep; 200.
            orjson itself reads no deeper than 1024. Passing it raises
            :class:`crosswalk.errors.NestingTooDeepError`.
        events: the most events of one stream; 10 million. The reader counts them and raises
            :class:`crosswalk.errors.TooManyEventsError`.
        total_bytes: the most bytes of one stream, framing included; 4 GiB. Passing it raises
            :class:`crosswalk.errors.StreamTooLargeError`.

    Raises:
        ValueError: a limit is not a whole number above 0.
    """

    line_bytes: int = attrs.field(default=64 * MIB, validator=_positive)
    depth: int = attrs.field(default=200, validator=_positive)
    events: int = attrs.field(default=10_000_000, validator=_positive)
    total_bytes: int = attrs.field(default=4 * GIB, validator=_positive)


DEFAULT = Limits()
"""The limits that apply where none are given."""
