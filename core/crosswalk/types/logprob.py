"""How likely the model found its tokens."""

from __future__ import annotations

import attrs

from crosswalk.text import short_repr
from crosswalk.types._value import as_optional_tuple, as_tuple, fast_init

__all__ = ["TokenLogprob"]


@fast_init
@attrs.frozen(repr=False, weakref_slot=False)
class TokenLogprob:
    """One token with its log probability.

    Attributes:
        token: the token as text.
        logprob: natural logarithm of its probability; ``None`` where the model has none, as for the first
            token of a prompt.
        bytes: its UTF-8 bytes, which may be a part of a character; ``None`` when not sent.
        top: the likeliest tokens at this place, in the provider's order.
    """

    token: str
    logprob: float | None
    bytes: tuple[int, ...] | None = attrs.field(default=None, converter=as_optional_tuple)
    top: tuple[TokenLogprob, ...] = attrs.field(default=(), converter=as_tuple)

    __repr__ = short_repr("token", "logprob", "top")
