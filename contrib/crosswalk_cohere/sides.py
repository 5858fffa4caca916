"""What comes with an answer: citations, log probabilities and token counts (sections 2, 3 and 5)."""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    CitationRef,
    MappingState,
    Provenance,
    Segment,
    SegmentType,
    TokenLogprob,
    UsageInfo,
    accept_object,
    accept_objects,
    leave_mistyped,
    look_at,
)

__all__ = ["citation_segment", "take_logprobs", "usage_info"]

_LARGEST = 2**53  # from there on a float no longer tells neighbours apart


def citation_segment(citation: dict[str, Any]) -> Segment:
    """The segment of one citation of v2 or v1, with a reference for each source; the citation stays in the extensions.

    The span counts the characters of the content block ``content_index``, or of the tool plan where ``type`` is ``PLAN``;
    both stand in the metadata.
    """
    start, end = _look_at_count(citation, "start"), _look_at_count(citation, "end")
    span = None if start is None or end is None else (start, end)
    refs = [_source(source, span) for source in accept_objects(citation, "sources")]
    ids = look_at(citation, "document_ids", list) or []
    if all(type(id) is str for id in ids):
        refs += [CitationRef(id, None, span) for id in ids]
    else:
        leave_mistyped(citation, "document_ids")
    about = {
        "type": look_at(citation, "type", str),
        "content_index": _look_at_count(citation, "content_index"),
    }
    said = {name: value for name, value in about.items() if value is not None}
    text = look_at(citation, "text", str) or ""
    return Segment(SegmentType.CITATION, text, said, tuple(refs) or (CitationRef(span=span),))


def _source(source: dict[str, Any], span: tuple[int, int] | None) -> CitationRef:
    """The reference for a tool's output or for a document, whose fields are the caller's own."""
    document = look_at(source, "document", dict) or {}
    names = (document.get(name) for name in ("url", "title"))
    where = next((name for name in names if isinstance(name, str) and name), None)
    return CitationRef(look_at(source, "id", str), where, span)


def take_logprobs(item: dict[str, Any], state: MappingState) -> tuple[TokenLogprob, ...]:
    """The token of *item*, a stretch of text with the log probabilities of its tokens; their ids stay.

    Of a stretch of several tokens nobody knows which text is whose: it stays whole, and that some are missing is noted.
    """
    text, values = look_at(item, "text", str), look_at(item, "logprobs", list)
    look_at(item, "token_ids", list)
    if not values:
        return ()
    for value in values:
        if type(value) is not float and type(value) is not int:
            leave_mistyped(item, "logprobs")
            return ()
    if text is None or len(values) > 1:
        state.note("logprobs", Provenance.UNMAPPED)
        return ()
    del item["text"], item["logprobs"]
    return (TokenLogprob(text, float(values[0])),)


def usage_info(
    usage: dict[str, Any], state: MappingState, early: dict[str, Any] | None = None
) -> UsageInfo | None:
    """The counts of *usage*, an object with ``tokens``, ``billed_units`` and ``cached_tokens``; ``None`` without any.

    What is charged stands in where the tokens are missing, and is marked as derived; it stays in the extensions as well.
    Tokens of images are counted apart from those of text: the two make up the prompt, which is marked, because no document
    says so.

    Args:
        usage: the object.
        state: the state of this answer.
        early: what the first version of v1 had in place of the tokens; ``None`` where it has nothing.
    """
    tokens = accept_object(usage, "tokens") or {}
    prompt, completion = _accept_count(tokens, "input_tokens"), _accept_count(tokens, "output_tokens")
    images = _look_at_count(tokens, "image_tokens")
    is_derived = bool(images) and prompt is not None
    if prompt is not None:
        prompt += images or 0
    if early:
        said = _look_at_count(early, "prompt_tokens"), _look_at_count(early, "response_tokens")
        prompt = said[0] if prompt is None else prompt
        completion = said[1] if completion is None else completion
    billed = accept_object(usage, "billed_units") or {}
    charged = _look_at_count(billed, "input_tokens"), _look_at_count(billed, "output_tokens")
    found = state.usage_info(
        charged[0] if prompt is None else prompt,
        charged[1] if completion is None else completion,
        cached_tokens=_accept_count(usage, "cached_tokens"),
        reasoning_tokens=_accept_count(tokens, "reasoning_tokens"),
    )
    if is_derived or (prompt is None and charged[0] is not None):
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    if completion is None and charged[1] is not None:
        state.note("usage.completion_tokens", Provenance.DERIVED)
    return found


def _look_at_count(container: dict[str, Any], key: str) -> int | None:
    """The count under *key*, which stays: this API writes its counts as floats, ``12.0``. Anything else is noted."""
    value = container.get(key)
    if value is None:
        return None
    is_number = type(value) is float or type(value) is int
    if is_number and 0 <= value <= _LARGEST and value == int(value):
        return int(value)
    leave_mistyped(container, key)
    return None


def _accept_count(container: dict[str, Any], key: str) -> int | None:
    """Take the count under *key*; anything else stays, and is noted."""
    count = _look_at_count(container, key)
    if count is not None or container.get(key) is None:
        container.pop(key, None)
    return count
