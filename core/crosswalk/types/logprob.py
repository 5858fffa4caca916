"""How likely the model found its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, short_repr
from crosswalk.types._value import as_tuple, check_items, check_number, check_text

_INFINITY: Final = float("inf")


def _as_bytes(value: Iterable[int] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = value if type(value) in (tuple, list, bytes, bytearray) else as_tuple(value)
    try:
        return tuple(bytes(numbers))  # which takes integers from 0 to 255 only
    except (TypeError, ValueError):
        raise ResponseValidationError("TokenLogprob.bytes must hold integers from 0 to 255") from None


@brief
@final
@attrs.frozen(weakref_slot=False)
class TokenLogprob:
    """One token with its log probability.

    Attributes:
        token: the token as text.
        logprob: natural logarithm of its probability; ``None`` where the model has none, as for the first
            token of a prompt.
        bytes: its UTF-8 bytes, which may be a part of a character; ``None`` when not sent.
        top: the likeliest tokens at this place, in the provider's order.

    Raises:
        ResponseValidationError: a field of another type, a number that is not finite, a byte that is none.
    """

    token: str
    logprob: float | None = None
    bytes: tuple[int, ...] | None = attrs.field(default=None, converter=_as_bytes)
    top: tuple[TokenLogprob, ...] = attrs.field(default=(), converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        # Spelt out: there may be tens of thousands of these in one answer.
        token, logprob = self.token, self.logprob
        if type(token) is not str or not token.isascii():
            check_text(self, "token")
        if logprob is not None and (type(logprob) is not float or not -_INFINITY < logprob < _INFINITY):
            check_number(self, "logprob")
        for other in self.top:
            if type(other) is not TokenLogprob:
                check_items(self, "top", TokenLogprob)

    __repr__ = short_repr("token", "logprob", "top")


_new: Final = object.__new__
_set_token, _set_logprob, _set_bytes, _set_top = (
    vars(TokenLogprob)[f.name].__set__ for f in attrs.fields(TokenLogprob)
)


def token_logprob(
    token: str, logprob: float | None, bytes: tuple[int, ...] | None, top: tuple[TokenLogprob, ...]
) -> TokenLogprob:
    """A :class:`TokenLogprob` for a caller that has checked the types: a quarter of the constructor's time."""
    is_plain = logprob is None or (type(logprob) is float and -_INFINITY < logprob < _INFINITY)
    if not (is_plain and token.isascii()):
        return TokenLogprob(token, logprob, bytes, top)
    made = _new(TokenLogprob)
    _set_token(made, token)
    _set_logprob(made, logprob)
    _set_bytes(made, bytes)
    _set_top(made, top)
    return made
