"""Annotations of a text: the sources that it rests on, and the files that it names (section 2.2)."""

from __future__ import annotations

from typing import Any

from crosswalk import CitationRef, Segment, SegmentType, get_count, get_string

__all__ = ["citation"]

_IN_THE_REF = ("url", "file_id", "start_index", "end_index")


def citation(annotation: dict[str, Any], place: str) -> Segment:
    """*annotation* as a segment: what is cited as the content, where it is as the reference, the rest as metadata.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    name = "title" if annotation.get("title") is not None else "filename"
    content = get_string(annotation, name, place)
    start, end = get_count(annotation, "start_index", place), get_count(annotation, "end_index", place)
    ref = CitationRef(
        get_string(annotation, "file_id", place) or None,
        get_string(annotation, "url", place) or None,
        None if start is None or end is None else (start, end),
    )
    carried = {name, *_IN_THE_REF} if ref.span is not None else {name, "url", "file_id"}
    rest = {key: value for key, value in annotation.items() if key not in carried or value in (None, "")}
    return Segment(SegmentType.CITATION, content or "", rest, (ref,))
