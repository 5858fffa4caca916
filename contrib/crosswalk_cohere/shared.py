"""The shared parts of Cohere's dialects: ends, errors, citations and counts (sections 2 to 5, 7)."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.plugins import (
    CitationRef,
    ErrorInfo,
    FinishReason,
    MappingState,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    UsageDetails,
    UsageInfo,
    VendorErrors,
    accept_object,
    accept_objects,
    count,
    error_delta,
    error_info,
    leave_mistyped,
    look_at,
)

_LARGEST_EXACT = 2**53  # from there on a float no longer tells neighbours apart
_FINISH_REASONS = {
    "COMPLETE": FinishReason.STOP,
    "STOP_SEQUENCE": FinishReason.STOP,
    "TOOL_CALL": FinishReason.TOOL_CALLS,
    "MAX_TOKENS": FinishReason.LENGTH,
    "ERROR_LIMIT": FinishReason.LENGTH,
    "ERROR_TOXIC": FinishReason.CONTENT_FILTER,
    "USER_CANCEL": FinishReason.CANCELLED,
    "ERROR": FinishReason.ERROR,
    "TIMEOUT": FinishReason.ERROR,
    "": FinishReason.STOP,
}
_ERRORS = VendorErrors("crosswalk_cohere", "cohere")
_INPUT, _OUTPUT, _REASONING, _IMAGE = "input_tokens", "output_tokens", "reasoning_tokens", "image_tokens"
_CACHED, _EARLY_INPUT, _EARLY_OUTPUT = "cached_tokens", "prompt_tokens", "response_tokens"
USAGE = {
    f"tokens.{_INPUT}": count("prompt_tokens"),
    f"tokens.{_OUTPUT}": count("completion_tokens"),
    f"tokens.{_REASONING}": count("reasoning_tokens"),
    f"tokens.{_IMAGE}": count("image_input_tokens"),
    _CACHED: count("cached_tokens"),
    f"billed_units.{_INPUT}": count("prompt_tokens"),
    f"billed_units.{_OUTPUT}": count("completion_tokens"),
}
"""The rows of the counts. Code takes them, for this API writes floats, and billed units replace what is missing."""
EARLY_USAGE = {_EARLY_INPUT: count("prompt_tokens"), _EARLY_OUTPUT: count("completion_tokens")}
"""The rows of the counts in the first version of v1."""


class FinishWords:
    """The words of all dialects: the hook ``map_finish_reason``."""

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The meaning of ``finish_reason``. ``""`` is a complete body of v1 without any."""
        if reason == "":
            state.note("finish_reason", Provenance.DERIVED)
        return _FINISH_REASONS.get(reason)


def end_delta(word: str, message: str | None) -> ResponseDelta:
    """Return the end of an answer: its finish *word*, and the error in *message* if it failed."""
    if not message:
        return ResponseDelta(raw_finish_reason=word)
    info = error_info(None, {"finish_reason": word or None, "error": message})
    info = _ERRORS.refined(attrs.evolve(info, code=word or None))
    return attrs.evolve(error_delta(info), raw_finish_reason=word)


def is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* is an error that only its text shows."""
    is_error = isinstance(event.get("message"), str) or isinstance(event.get("error"), str | dict)
    return is_error and "finish_reason" not in event and "text" not in event


def cohere_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error body. *status* is ``None`` inside a stream."""
    return _ERRORS.refined(error_info(status, body))


def citation_segment(citation: dict[str, Any]) -> Segment:
    """Return the segment of one citation of v2 or v1, with a reference for each source. It stays in the extensions too.

    The span counts the characters of the content block ``content_index``, or of the tool plan if ``type`` is ``PLAN``.
    Both are in the metadata.
    """
    start, end = _look_at_count(citation, "start"), _look_at_count(citation, "end")
    span = None if start is None or end is None else (start, end)
    refs = [_source(source, span) for source in accept_objects(citation, "sources")]
    ids = look_at(citation, "document_ids", list) or []
    if all(type(id) is str for id in ids):
        refs += [CitationRef(id, None, span) for id in ids]
    else:
        leave_mistyped(citation, "document_ids")
    kind, index = look_at(citation, "type", str), _look_at_count(citation, "content_index")
    fields = {"type": kind, "content_index": index}
    metadata = {name: value for name, value in fields.items() if value is not None}
    text = look_at(citation, "text", str) or ""
    return Segment(SegmentType.CITATION, text, metadata, tuple(refs) or (CitationRef(span=span),))


def _source(source: dict[str, Any], span: tuple[int, int] | None) -> CitationRef:
    """Return the reference for a tool's output or for a document with fields of the caller."""
    document = look_at(source, "document", dict) or {}
    addresses = (document.get(name) for name in ("url", "title"))
    address = next((name for name in addresses if isinstance(name, str) and name), None)
    return CitationRef(look_at(source, "id", str), address, span)


def usage_info(
    usage: dict[str, Any], state: MappingState, early_usage: dict[str, Any] | None = None
) -> UsageInfo | None:
    """Return the counts of *usage*, an object with ``tokens``, ``billed_units`` and ``cached_tokens``, or ``None``.

    Billed units replace missing tokens, are marked as derived, and stay in the extensions as well. The prompt is the sum of
    the tokens of images and of text. It is marked, because no document states it.

    Args:
        usage: the object.
        state: the state of this answer.
        early_usage: the counts of the first version of v1, or ``None`` without any.
    """
    tokens = accept_object(usage, "tokens") or {}
    prompt_tokens, completion_tokens = _accept_count(tokens, _INPUT), _accept_count(tokens, _OUTPUT)
    image_tokens = _accept_count(tokens, _IMAGE) if _IMAGE in tokens else None
    is_derived = bool(image_tokens) and prompt_tokens is not None
    if prompt_tokens is not None:
        prompt_tokens += image_tokens or 0
    if early_usage:
        early_counts = (
            _look_at_count(early_usage, _EARLY_INPUT),
            _look_at_count(early_usage, _EARLY_OUTPUT),
        )
        prompt_tokens = early_counts[0] if prompt_tokens is None else prompt_tokens
        completion_tokens = early_counts[1] if completion_tokens is None else completion_tokens
    billed_units = accept_object(usage, "billed_units") or {}
    billed_counts = _look_at_count(billed_units, _INPUT), _look_at_count(billed_units, _OUTPUT)
    info = state.usage_info(
        billed_counts[0] if prompt_tokens is None else prompt_tokens,
        billed_counts[1] if completion_tokens is None else completion_tokens,
        cached_tokens=_accept_count(usage, _CACHED),
        reasoning_tokens=_accept_count(tokens, _REASONING) if _REASONING in tokens else None,
        details=UsageDetails.EMPTY if image_tokens is None else UsageDetails(image_input_tokens=image_tokens),
    )
    if is_derived or (prompt_tokens is None and billed_counts[0] is not None):
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    if completion_tokens is None and billed_counts[1] is not None:
        state.note("usage.completion_tokens", Provenance.DERIVED)
    return info


def _look_at_count(container: dict[str, Any], key: str) -> int | None:
    """The count under *key*, which stays: this API writes its counts as floats, ``12.0``. Anything else is noted."""
    value = container.get(key)
    if value is None:
        return None
    is_number = type(value) is float or type(value) is int
    if is_number and 0 <= value <= _LARGEST_EXACT and value == int(value):
        return int(value)
    leave_mistyped(container, key)
    return None


def _accept_count(container: dict[str, Any], key: str) -> int | None:
    """Take the count under *key*. Other values stay and are noted."""
    value = container.pop(key, None)
    if value is None or (type(value) is int and 0 <= value <= _LARGEST_EXACT):
        return value
    container[key] = value
    count = _look_at_count(container, key)
    if count is not None:
        del container[key]
    return count
