"""The deltas of a response object: a body, or what an event carries that starts or ends a stream (section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import attrs

from crosswalk import (
    MappingState,
    ResponseDelta,
    TrailingContentError,
    error_delta,
    get_array,
    get_object,
    get_string,
    require_object,
)
from crosswalk_openai_responses.answer import Answer
from crosswalk_openai_responses.consumed import left_of_item
from crosswalk_openai_responses.errors import responses_error
from crosswalk_openai_responses.events import ENDS, STARTS
from crosswalk_openai_responses.finish import finish_word
from crosswalk_openai_responses.items import item_deltas

__all__ = ["response_deltas", "response_of"]


def response_of(event: dict[str, Any]) -> dict[str, Any] | None:
    """The response object that *event* is or carries; ``None`` without one.

    Raises:
        WireTypeError: where one should be there is none.
    """
    kind = event.get("type")
    if isinstance(kind, str) and (kind in STARTS or kind in ENDS):
        return require_object(event.get("response"), "response")
    is_body = kind is None and (event.get("object") == "response" or type(event.get("output")) is list)
    return event if is_body else None


def response_deltas(
    event: dict[str, Any], response: dict[str, Any], answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """What *response* adds to what was said: in a body everything, at the end of a stream little or nothing.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
        TrailingContentError: it is another answer: it begins again, or comes after the end.
    """
    kind = event.get("type")
    if answer.has_ended or (answer.has_begun and kind == "response.created"):
        raise TrailingContentError("a second answer has begun")
    answer.has_begun = answer.has_begun or kind == "response.created"
    answer.used = frozenset(event) if kind is None else frozenset({"type", "response"})
    state.identify(
        id=get_string(response, "id"), model=get_string(response, "model"), created=_time(response)
    )
    output = [
        require_object(wire, f"output[{number}]") for number, wire in enumerate(get_array(response, "output"))
    ]
    get_object(response, "incomplete_details")
    if kind in STARTS:
        answer.status = STARTS[kind]
        answer.left = dict(enumerate(output))
    else:
        for number, (item, wire) in enumerate(answer.matched(output)):
            yield from item_deltas(wire, f"output[{number}]", item, answer, state)
            answer.left[item.number] = left_of_item(wire, item)
        answer.finish = finish_word(response, None if kind is None else ENDS[kind])
        answer.status = (answer.finish or "").partition(":")[0]
        answer.has_ended = answer.finish is not None
    error = response.get("error")
    if error:
        failed = error_delta(responses_error(None, error), state)
        yield attrs.evolve(failed, raw_finish_reason=answer.finish)
    elif answer.finish is not None:
        yield ResponseDelta(state.next_index(), raw_finish_reason=answer.finish)


def _time(response: dict[str, Any]) -> datetime | None:
    """The time of creation, whole seconds or not; ``None`` where it is missing, 0 or no time at all."""
    created = response.get("created_at")
    if isinstance(created, bool) or not isinstance(created, int | float) or created <= 0:
        return None
    try:
        return datetime.fromtimestamp(created, UTC)
    except (ValueError, OverflowError, OSError):
        return None
