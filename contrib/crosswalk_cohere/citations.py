"""Citations: which words of an answer rest on which document or tool (sections 2 and 3).

Segments say what can be said in the same words for every provider; everything, the documents' text too, stays in the
extensions.
"""

from __future__ import annotations

from typing import Any

from crosswalk import (
    CitationRef,
    Segment,
    SegmentType,
    WireTypeError,
    get_array,
    get_object,
    get_string,
    require_object,
)
from crosswalk_cohere.usage import get_whole

__all__ = ["citation_segment"]


def citation_segment(citation: Any, place: str) -> Segment:
    """The segment of one citation of v2 or v1, with a reference for each source.

    The span counts the characters of the content block ``content_index``, or of the tool plan where ``type`` is ``PLAN``;
    both stand in the metadata.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    citation = require_object(citation, place)
    start, end = get_whole(citation, "start", place), get_whole(citation, "end", place)
    span = None if start is None or end is None else (start, end)
    refs = []
    for number, item in enumerate(get_array(citation, "sources", place)):
        spot = f"{place}.sources[{number}]"
        refs.append(_source(require_object(item, spot), span, spot))
    for id in get_array(citation, "document_ids", place):
        if not isinstance(id, str):
            raise WireTypeError(f"{place}.document_ids", expected="strings", got=id)
        refs.append(CitationRef(id, None, span))
    about: dict[str, Any] = {
        "type": get_string(citation, "type", place),
        "content_index": get_whole(citation, "content_index", place),
    }
    said = {name: value for name, value in about.items() if value is not None}
    text = get_string(citation, "text", place) or ""
    return Segment(SegmentType.CITATION, text, said, tuple(refs) or (CitationRef(span=span),))


def _source(source: dict[str, Any], span: tuple[int, int] | None, place: str) -> CitationRef:
    """The reference for a tool's output or for a document, whose fields are the caller's own."""
    document = get_object(source, "document", place) or {}
    names = (document.get(name) for name in ("url", "title"))
    where = next((name for name in names if isinstance(name, str) and name), None)
    return CitationRef(get_string(source, "id", place), where, span)
