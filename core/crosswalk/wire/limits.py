"""The limits of untrusted input."""

from __future__ import annotations

from typing import Any

import attrs

MIB = 2**20
GIB = 2**30


def _positive(limits: Limits, attribute: attrs.Attribute[int], value: Any) -> None:
    if type(value) is not int or value <= 0:
        raise ValueError(f"Limits.{attribute.name} must be a whole number above 0, got {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """
    The bounds of the cost of one stream or body, each with a separate error.

    The defaults are far above any model's output. They stop a broken or hostile server,
    but not an answer. You cannot turn a limit off, but you can set a larger number.

    Attributes:
        line_bytes: the longest line, frame or single body, in bytes. Default: 64 MiB. Passing it raises
            :class:`crosswalk.errors.LineTooLongError`.
        depth: the deepest nesting of arrays and objects in one event, where ``[]`` is 1 deep. Default: 200.
            orjson itself reads no deeper than 1024. Passing it raises
            :class:`crosswalk.errors.NestingTooDeepError`.
        events: the most events of one stream. Default: 10 million. The reader counts them and raises
            :class:`crosswalk.errors.TooManyEventsError`.
        total_bytes: the most bytes of one stream, with framing. Default: 4 GiB. Passing it raises
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
