"""Token log probabilities in the shapes that servers send them: a side of the answer, so what is amiss stays where it is."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.plugin.state import accept_array, is_number, leave_mistyped
from crosswalk.types.values import TokenLogprob, token_logprob


def accept_logprobs(
    container: dict[str, Any],
    key: str,
    *,
    token: str = "token",
    logprob: str = "logprob",
    top: str = "top_logprobs",
) -> tuple[TokenLogprob, ...] | None:
    """Take the entries ``{token, logprob, bytes?, top_logprobs?}`` under *key*, as OpenAI's chat and Ollama send them.

    A list with an entry without token, or with a log probability that is not a number, stays complete and is noted as
    ``mistyped``. Bytes or alternatives of a wrong type stay in their entry, like its extra fields.

    Args:
        container: the object that has the list.
        key: its key.
        token: the key of an entry's token, likewise *logprob*, and *top* for the likeliest tokens at its position.

    Returns:
        The tokens, or ``None`` without a list, for an empty one, and for one that stays.
    """
    items = container.get(key)
    if type(items) is not list or not items:
        accept_array(container, key)
        return None
    for item in items:
        number = item.get(logprob) if type(item) is dict else ""
        if not (number is None or is_number(number)) or type(item.get(token)) is not str:
            leave_mistyped(container, key)
            return None
    results = []
    has_more = False
    for item in items:
        sent = item.pop("bytes", None)
        if sent is not None:
            data = _as_bytes(sent)
            if data is None:
                item["bytes"] = sent
                leave_mistyped(item, "bytes")
            sent = data
        others = None
        if top in item:
            others = accept_logprobs(item, top, token=token, logprob=logprob, top=top)
        results.append(token_logprob(item.pop(token), item.pop(logprob, None), sent, others or ()))
        has_more = has_more or bool(item)
    if not has_more:
        del container[
            key
        ]  # there may be tens of thousands, so entries without extra fields are removed together
    return tuple(results)


def _is_token(token: Any, logprob: Any) -> bool:
    return type(token) is str and (logprob is None or is_number(logprob))


def _as_bytes(value: Any) -> tuple[int, ...] | None:
    """Return *value* as bytes, or ``None`` if it is not a list of integers from 0 to 255."""
    if type(value) is not list or not _INTEGERS.issuperset(map(type, value)):
        return None
    try:
        return tuple(bytes(value))
    except ValueError:
        return None


_INTEGERS: Final = frozenset({int})


_LISTS: Final = ("tokens", "token_logprobs", "top_logprobs")


def accept_legacy_logprobs(logprobs: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Take the parallel lists ``{tokens, token_logprobs, top_logprobs?}`` of OpenAI's completions.

    Lists of different lengths, or with other values, stay unchanged and are noted as ``mistyped``.

    Returns:
        The tokens, or ``None`` without any, or if they stay.
    """
    tokens, values, tops = (logprobs.get(name) for name in _LISTS)
    if not (
        type(tokens) is list
        and type(values) is list
        and (tops is None or type(tops) is list)
        and len(tokens) == len(values) == len(tops or tokens)
        and all(map(_is_token, tokens, values))
        and all(map(_is_table, tops or ()))
    ):
        leave_mistyped(logprobs, "tokens")
        return None
    for name in _LISTS:
        logprobs.pop(name, None)
    results = [
        TokenLogprob(token, value, None, tuple([TokenLogprob(*other) for other in (table or {}).items()]))
        for token, value, table in zip(tokens, values, tops or [None] * len(tokens), strict=True)
    ]
    return tuple(results) or None


def _is_table(value: Any) -> bool:
    return value is None or (type(value) is dict and all(map(_is_token, value, value.values())))


def logprob_of(token: TokenLogprob) -> dict[str, Any]:
    """*token* as such an entry: the reverse of :func:`accept_logprobs`."""
    return {**_entry_of(token), "top_logprobs": [_entry_of(top) for top in token.top]}


def _entry_of(token: TokenLogprob) -> dict[str, Any]:
    sent = None if token.bytes is None else list(token.bytes)
    return {"token": token.token, "logprob": token.logprob, "bytes": sent}
