"""Token counts: what the model processed, and what is charged (section 5)."""

from __future__ import annotations

from typing import Any

from crosswalk import MappingState, Provenance, UsageInfo, WireTypeError, get_number, get_object

__all__ = ["get_whole", "usage_info"]

_LARGEST = 2**53  # from there on a float no longer tells neighbours apart


def usage_info(usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
    """The counts of *usage*, an object with ``tokens``, ``billed_units`` and ``cached_tokens``; ``None`` without any.

    What is charged stands in where the tokens are missing, and is marked as derived. Tokens of images are counted apart
    from those of text: the two make up the prompt, which is marked as well, because no document says so.

    Raises:
        WireTypeError: a count is not a non-negative whole number.
    """
    tokens, billed, counted = (
        get_object(usage, name, place) or {} for name in ("tokens", "billed_units", "token_count")
    )
    where = f"{place}.tokens"
    text, output = get_whole(tokens, "input_tokens", where), get_whole(tokens, "output_tokens", where)
    images = get_whole(tokens, "image_tokens", where)
    reasoning = get_whole(tokens, "reasoning_tokens", where)
    cached = get_whole(usage, "cached_tokens", place)
    charged = [get_whole(billed, name, f"{place}.billed_units") for name in ("input_tokens", "output_tokens")]
    early = [
        get_whole(counted, name, f"{place}.token_count") for name in ("prompt_tokens", "response_tokens")
    ]
    found = (text, output, images, reasoning, cached, *charged, *early)
    if all(count is None for count in found):
        return None
    prompt = _first("usage.prompt_tokens", (text, early[0]), charged[0], state)
    if images and text is not None:
        prompt += images
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    completion = _first("usage.completion_tokens", (output, early[1]), charged[1], state)
    return UsageInfo(prompt, completion, cached, reasoning)


def _first(path: str, counts: tuple[int | None, ...], charged: int | None, state: MappingState) -> int:
    """The first of *counts* that there is, else what is *charged*, and the provenance of the field at *path*."""
    for count in counts:
        if count is not None:
            state.note(path, None)
            return count
    state.note(path, Provenance.ABSENT if charged is None else Provenance.DERIVED)
    return charged or 0


def get_whole(container: dict[str, Any], key: str, place: str) -> int | None:
    """The count under *key*: this API writes its counts as floats, ``12.0``.

    Raises:
        WireTypeError: it is not a non-negative whole number.
    """
    value = get_number(container, key, place)
    if value is None:
        return None
    if value < 0 or value > _LARGEST or value != int(value):
        raise WireTypeError(f"{place}.{key}" if place else key, expected="a count of at least 0", got=value)
    return int(value)
