"""Token log probabilities in the shapes that servers send them."""

from __future__ import annotations

from typing import Any

from crosswalk.errors import WireTypeError
from crosswalk.mapping.leaves import get_array, get_number, get_string, require_object
from crosswalk.mapping.residue import TAKEN
from crosswalk.types.logprob import TokenLogprob

__all__ = ["CONSUMED_TOKENS", "legacy_logprobs", "token_logprobs"]

_TOKEN = {"token": TAKEN, "logprob": TAKEN, "bytes": TAKEN}
CONSUMED_TOKENS = [{**_TOKEN, "top_logprobs": [_TOKEN]}]
"""What :func:`token_logprobs` takes, as a table for ``residue``."""

_INTEGERS = {int}


def token_logprobs(items: list[Any], place: str) -> tuple[TokenLogprob, ...]:
    """Entries ``{token, logprob, bytes?, top_logprobs?}``, as OpenAI chat and Ollama send them.

    Args:
        items: the entries.
        place: where they stand in the event, for error messages.

    Raises:
        WireTypeError: an entry is no object or a leaf of it has another type.
    """
    return tuple([_token(item, place, number) for number, item in enumerate(items)])


def _token(item: Any, place: str, number: int) -> TokenLogprob:
    # There may be tens of thousands of these in one body: what is as it should be passes without a call.
    if type(item) is not dict:
        require_object(item, f"{place}[{number}]")
    token, logprob, sent = item.get("token"), item.get("logprob"), item.get("bytes")
    if type(token) is not str or (logprob is not None and type(logprob) is not float):
        _check(item, f"{place}[{number}]")
    top = item.get("top_logprobs")
    return TokenLogprob(
        token,
        logprob,
        None if sent is None else _bytes(sent, place, number),
        _top(item, place, number) if top is not None else (),
    )


def _check(item: dict[str, Any], place: str) -> None:
    get_number(item, "logprob", place)
    if get_string(item, "token", place) is None:
        raise WireTypeError(f"{place}.token", expected="string", got=None)


def _bytes(sent: Any, place: str, number: int) -> tuple[int, ...]:
    try:
        bytes(sent)  # checks the range
        if type(sent) is list and set(map(type, sent)) <= _INTEGERS:
            return tuple(sent)
    except (TypeError, ValueError):
        pass
    raise WireTypeError(f"{place}[{number}].bytes", expected="array of bytes", got=sent)


def _top(item: dict[str, Any], place: str, number: int) -> tuple[TokenLogprob, ...]:
    spot = f"{place}[{number}]"
    return token_logprobs(get_array(item, "top_logprobs", spot), f"{spot}.top_logprobs")


def legacy_logprobs(logprobs: dict[str, Any], place: str) -> tuple[TokenLogprob, ...]:
    """The parallel lists ``{tokens, token_logprobs, top_logprobs?}`` of OpenAI's completions.

    Args:
        logprobs: the object that holds the lists.
        place: where it stands in the event, for error messages.

    Raises:
        WireTypeError: the lists differ in length, or a leaf of them has another type.
    """
    tokens = get_array(logprobs, "tokens", place)
    values = get_array(logprobs, "token_logprobs", place)
    tops = get_array(logprobs, "top_logprobs", place) or [None] * len(tokens)
    if not len(tokens) == len(values) == len(tops):
        raise WireTypeError(place, expected="lists of equal length", got=tokens)
    entries = []
    for number, (token, value, top) in enumerate(zip(tokens, values, tops, strict=True)):
        table = {} if top is None else require_object(top, f"{place}.top_logprobs[{number}]")
        others = [{"token": text, "logprob": logprob} for text, logprob in table.items()]
        entries.append({"token": token, "logprob": value, "top_logprobs": others})
    return token_logprobs(entries, f"{place}.tokens")
