"""Log probabilities of the tokens (section 8)."""

from __future__ import annotations

from typing import Any

from crosswalk import (
    TokenLogprob,
    WireTypeError,
    get_array,
    get_number,
    get_object,
    get_string,
    require_object,
)

__all__ = ["token_logprobs"]


def token_logprobs(candidate: dict[str, Any], place: str) -> tuple[TokenLogprob, ...]:
    """The tokens of ``logprobsResult``, each with the likeliest ones at its place; empty when there are none.

    Raises:
        WireTypeError: a leaf has another type, or the two lists differ in length.
    """
    result = get_object(candidate, "logprobsResult", place) or {}
    where = f"{place}.logprobsResult"
    chosen = get_array(result, "chosenCandidates", where)
    tops = get_array(result, "topCandidates", where) or [{}] * len(chosen)
    if len(tops) != len(chosen):
        raise WireTypeError(where, expected="lists of equal length", got=tops)
    found = []
    for number, (item, top) in enumerate(zip(chosen, tops, strict=True)):
        spot = f"{where}.topCandidates[{number}]"
        others = get_array(require_object(top, spot), "candidates", spot)
        found.append(
            TokenLogprob(
                *_token(item, f"{where}.chosenCandidates[{number}]"),
                top=tuple(
                    TokenLogprob(*_token(other, f"{spot}.candidates[{n}]")) for n, other in enumerate(others)
                ),
            )
        )
    return tuple(found)


def _token(item: Any, place: str) -> tuple[str, float | None]:
    entry = require_object(item, place)
    token, value = get_string(entry, "token", place), get_number(entry, "logProbability", place)
    if token is None:
        raise WireTypeError(f"{place}.token", expected="string", got=None)
    return token, None if value is None else float(value)
