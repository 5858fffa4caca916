"""The response object: a body, or what an event carries that starts or ends a stream; its end, its tokens, its errors.

Provider document "OpenAI Responses", sections 2, 4, 5 and 7. The API has no finish word: the status and the reason of an
incomplete response make one.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    MappingState,
    ResponseDelta,
    TrailingContentError,
    UsageInfo,
    accept_count,
    accept_count_at,
    accept_object,
    error_delta,
    error_info,
    require_object,
    responses_wire as wire,
    take_object,
    take_objects,
    take_same,
    take_string,
)
from crosswalk_openai_responses.answer import Answer, Deltas, Object, look_string, numbered
from crosswalk_openai_responses.items import item_deltas

__all__ = ["RESERVED", "is_error", "response_deltas", "responses_error", "usage_info"]

RESERVED: Final = frozenset(
    {
        "created_at", "error", "id", "incomplete_details", "model", "object", "output", "output_text", "status", "usage",
    }
)  # fmt: skip
"""What typed fields take of a response: under these names nothing else may stand in the extensions."""


def response_deltas(
    event: Object, known: wire.WireEvent | None, answer: Answer, state: MappingState
) -> Deltas:
    """What the response that *event* carries, or is, adds: in a body everything, at the end of a stream little or nothing.

    What is left of it stands in the event itself, with what the event had beside.

    Raises:
        WireTypeError: what decides the answer has another type than the API promises.
        TrailingContentError: it is another answer: it begins again, or comes after the end.
    """
    response = event if known is None else require_object(event.get("response"), "response")
    is_created = known is not None and known.word == "created"
    if answer.has_ended or (answer.has_begun and is_created):
        raise TrailingContentError("a second answer has begun")
    answer.has_begun = answer.has_begun or is_created
    state.take_identity(response, created="created_at")
    take_same(response, "object", "response")
    details = take_object(response, "incomplete_details") or {}
    answer.note_tools(response.get("tools"))
    output = take_objects(response, "output")
    if known is not None and known.of in wire.PENDING:
        for number, begun in enumerate(output):
            numbered(begun, number)
        _take_status(response, known.of, answer)
        finish = None
    else:
        for item, raw in answer.matched(output):
            yield from item_deltas(raw, item, answer, state)
            numbered(raw, item.number)
        finish = _take_finish(response, details, None if known is None else known.of, answer)
        answer.has_ended = finish is not None
    if "output_text" in response:
        take_same(response, "output_text", answer.text)
    error = response.pop("error", None)
    if error:
        failed = error_delta(responses_error(None, error))
        yield attrs.evolve(failed, raw_finish_reason=finish)
    else:
        if error is not None:
            response["error"] = error
        if finish is not None:
            yield ResponseDelta(raw_finish_reason=finish)
    if known is not None:
        del event["response"]
        for name in [name for name in event if name in response]:
            event[f"event_{name}"] = event.pop(name)
        event.update(response)


# How it ends.


def _take_finish(response: Object, details: Object, word: str | None, answer: Answer) -> str | None:
    """Take from *response* why it ended; ``None`` where it is still being made.

    Args:
        response: the response object.
        details: why it is incomplete.
        word: the status that the type of its event tells; ``None`` for a body.
        answer: the answer.
    """
    status = look_string(response, "status")
    if word is not None and (status is None or status in wire.PENDING):
        status = word
    if status is None or status in wire.PENDING:
        _take_status(response, None, answer)
        return None
    _take_status(response, status, answer)
    detail: str | None = None
    if status == "incomplete":
        detail = take_string(details, "reason")
    elif status == "failed":
        error = response.get("error")
        code = error.get("code") if type(error) is dict else None
        detail = code if type(code) is str else None
    take_same(details, "reason", None)
    return f"{status}:{detail}" if detail else status


def _take_status(response: Object, known: str | None, answer: Answer) -> None:
    """Take the status where it says what is *known*; extensions that told of one must tell of the next."""
    if not answer.tells_status and not take_same(response, "status", known):
        answer.tells_status = True


# Its tokens: inclusive, as the canonical ones are; they come once, with the end.


def usage_info(response: Object, state: MappingState) -> UsageInfo | None:
    """Take the counts of a response object; ``None`` when it has none."""
    usage = accept_object(response, "usage")
    if not usage:
        return None
    prompt, completion = accept_count(usage, "input_tokens"), accept_count(usage, "output_tokens")
    if prompt is not None:
        take_same(usage, "total_tokens", prompt + (completion or 0))
    return state.usage_info(
        prompt,
        completion,
        cached_tokens=accept_count_at(usage, ("input_tokens_details.cached_tokens",)),
        reasoning_tokens=accept_count_at(usage, ("output_tokens_details.reasoning_tokens",)),
        cache_write_tokens=accept_count_at(usage, ("input_tokens_details.cache_write_tokens",)),
    )


# Its errors: HTTP bodies, ``error`` events in three shapes, and the error of a failed response.

_KINDS: Final = {
    "bio_policy": ErrorKind.CONTENT_FILTER,
    "misalignment_policy_violation": ErrorKind.CONTENT_FILTER,
    "image_content_policy_violation": ErrorKind.CONTENT_FILTER,
    "vector_store_timeout": ErrorKind.TIMEOUT,
    "invalid_prompt": ErrorKind.INVALID_REQUEST,
    "data_residency_mismatch": ErrorKind.INVALID_REQUEST,
    "unsupported_image_media_type": ErrorKind.INVALID_REQUEST,
    "failed_to_download_image": ErrorKind.INVALID_REQUEST,
}
"""Codes whose words do not tell their kind."""

_ABOUT_IMAGES: Final = ("invalid_image", "invalid_base64_image", "image_", "empty_image")


def is_error(event: Object) -> bool:
    """Whether *event* is nothing but an error: flat, nested, or bare."""
    if event.get("type") == "error" or event.get("object") == "error":
        return True
    return bool(event.get("error")) and event.get("object") != "response"


def responses_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error says; *status* is ``None`` inside a stream."""
    raw = body
    if isinstance(body, dict):
        raw = {name: value for name, value in body.items() if (name, value) != ("type", "error")}
    info = attrs.evolve(error_info(status, raw), raw=None if body == "" else body)
    code = info.code or ""
    kind = _KINDS.get(code)
    if kind is None and info.kind is ErrorKind.UNKNOWN and code.startswith(_ABOUT_IMAGES):
        kind = ErrorKind.INVALID_REQUEST
    if kind is None:
        return info
    return attrs.evolve(info, kind=kind, retryable=kind is ErrorKind.TIMEOUT)
