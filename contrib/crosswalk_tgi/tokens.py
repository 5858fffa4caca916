"""Tokens with their log probabilities, ``{id, text, logprob, special}`` (section 2)."""

from __future__ import annotations

from typing import Any

from crosswalk import TAKEN, TokenLogprob, WireTypeError, require_object, token_logprobs

__all__ = ["CONSUMED_TOKEN", "as_logprobs"]

CONSUMED_TOKEN = {"text": TAKEN, "logprob": TAKEN}
"""What :func:`as_logprobs` takes of one token."""


def as_logprobs(tokens: list[Any], tops: list[Any], place: str) -> tuple[TokenLogprob, ...]:
    """*tokens* with the likeliest ones in the place of each.

    Args:
        tokens: the tokens.
        tops: for each of them a list of tokens; empty where they were not asked for.
        place: where the tokens stand in the event, for error messages.

    Raises:
        WireTypeError: a leaf has another type than the API promises, or the lists differ in length.
    """
    if tops and len(tops) != len(tokens):
        raise WireTypeError(place, expected="as many tokens as lists of the likeliest ones", got=tokens)
    entries = [_entry(token, place) for token in tokens]
    for entry, top in zip(entries, tops, strict=False):
        if top is not None and type(top) is not list:
            raise WireTypeError(f"the likeliest tokens for {place}", expected="array", got=top)
        entry["top_logprobs"] = [_entry(token, place) for token in top or ()]
    return token_logprobs(entries, place)


def _entry(item: Any, place: str) -> dict[str, Any]:
    token = require_object(item, f"a token of {place}")
    return {"token": token.get("text"), "logprob": token.get("logprob")}
