"""Log probabilities, by stretches of text (section 2)."""

from __future__ import annotations

from typing import Any

from crosswalk import (
    TAKEN,
    MappingState,
    Provenance,
    TokenLogprob,
    WireTypeError,
    get_array,
    get_string,
    require_object,
    taken_if,
)

__all__ = ["CONSUMED_ITEM", "token_logprobs"]


def _is_one_token(_: Any, item: dict[str, Any], __: MappingState) -> bool:
    return type(item.get("text")) is str and type(item.get("logprobs")) is list and len(item["logprobs"]) == 1


CONSUMED_ITEM = {"text": taken_if(_is_one_token), "logprobs": taken_if(_is_one_token, TAKEN)}
"""Of each item; the ids of its tokens stay."""


def token_logprobs(items: list[Any], place: str, state: MappingState) -> tuple[TokenLogprob, ...]:
    """The tokens of *items*, each of which is a stretch of text with the probabilities of its tokens.

    Of a stretch of several tokens nobody knows which text is whose: it stays in the extensions, and that some are
    missing here is noted.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    found = []
    for number, entry in enumerate(items):
        spot = f"{place}[{number}]"
        item = require_object(entry, spot)
        text = get_string(item, "text", spot)
        values = get_array(item, "logprobs", spot)
        for value in values:
            if type(value) not in (float, int):
                raise WireTypeError(f"{spot}.logprobs", expected="numbers", got=value)
        get_array(item, "token_ids", spot)
        if _is_one_token(None, item, state):
            found.append(TokenLogprob(text or "", float(values[0])))
        elif values:
            state.note("logprobs", Provenance.UNMAPPED)
    return tuple(found)
