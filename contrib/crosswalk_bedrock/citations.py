"""Citations: what a document or a web page says, and where (section 2)."""

from __future__ import annotations

from typing import Any

from crosswalk import (
    CitationRef,
    Segment,
    SegmentType,
    get_array,
    get_object,
    get_string,
    require_object,
)

__all__ = ["citation_segment"]


def citation_segment(citation: Any, place: str) -> Segment:
    """The segment of one citation: the cited words as content, all that it says as metadata.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    citation = require_object(citation, place)
    words = []
    for number, item in enumerate(get_array(citation, "sourceContent", place)):
        spot = f"{place}.sourceContent[{number}]"
        words.append(get_string(require_object(item, spot), "text", spot) or "")
    location = get_object(citation, "location", place) or {}
    web = get_object(location, "web", f"{place}.location") or {}
    where = (
        get_string(web, "url", f"{place}.location.web"),
        get_string(citation, "source", place),
        get_string(citation, "title", place),
    )
    source = next((name for name in where if name), None)
    return Segment(SegmentType.CITATION, "".join(words), citation, (CitationRef(source=source),))
