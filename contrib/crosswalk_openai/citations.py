"""Sources: annotations of a message, and the lists of sources that searching providers send beside the answer.

A source becomes a segment of its own behind the text that it covers (sections 2, 9 and 10): the title is its
content, the address and the span of the text are its reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import (
    TAKEN,
    CitationRef,
    MappingState,
    Segment,
    SegmentType,
    WireTypeError,
    get_array,
    get_integer,
    get_object,
    get_string,
    require_object,
    taken_if,
)

__all__ = ["ANNOTATIONS", "SOURCES", "citations", "new_sources"]


def _is_citation(_: Any, annotation: dict[str, Any], __: MappingState) -> bool:
    return annotation.get("type") == "url_citation" and bool(annotation.get("url_citation"))


def _has_span(_: Any, citation: dict[str, Any], __: MappingState) -> bool:
    return citation.get("start_index") is not None and citation.get("end_index") is not None


ANNOTATIONS = [
    {
        "type": taken_if(_is_citation),
        "url_citation": taken_if(
            _is_citation,
            {
                "title": TAKEN,
                "url": TAKEN,
                "start_index": taken_if(_has_span),
                "end_index": taken_if(_has_span),
            },
        ),
    }
]
"""What :func:`citations` takes; annotations of other types stay in the extensions."""


def citations(part: dict[str, Any], place: str) -> Iterator[Segment]:
    """The ``url_citation`` annotations of a message or delta, as segments.

    Raises:
        WireTypeError: a leaf of one has another type than the API promises.
    """
    for number, item in enumerate(get_array(part, "annotations", place)):
        spot = f"{place}.annotations[{number}]"
        annotation = require_object(item, spot)
        if get_string(annotation, "type", spot) != "url_citation":
            continue
        citation = get_object(annotation, "url_citation", spot)
        if citation:
            spot = f"{spot}.url_citation"
            start = get_integer(citation, "start_index", spot)
            end = get_integer(citation, "end_index", spot)
            span = None if start is None or end is None else (start, end)
            yield _source(get_string(citation, "title", spot), get_string(citation, "url", spot), span)


def _source(title: str | None, url: str | None, span: tuple[int, int] | None = None) -> Segment:
    return Segment(SegmentType.CITATION, title or "", annotations=(CitationRef(None, url, span),))


def new_sources(event: dict[str, Any], state: MappingState) -> Iterator[Segment]:
    """The sources that *event* lists at its top and no event before it did, as segments.

    ``[1]`` in the text means the first of them. A list that does not go on where the last one ended is left alone.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    results = [
        require_object(item, f"search_results[{number}]")
        for number, item in enumerate(get_array(event, "search_results"))
    ]
    titles = {}
    for number, result in enumerate(results):
        place = f"search_results[{number}]"
        titles[get_string(result, "url", place)] = get_string(result, "title", place)
    urls = get_array(event, "citations") or [url for url in titles if url]
    known: list[str] = state.data.setdefault("sources", [])
    shown: dict[str, str | None] = state.data.setdefault("titles", {})
    if urls[: len(known)] != known:
        return
    for number, url in enumerate(urls[len(known) :], len(known)):
        if type(url) is not str:
            raise WireTypeError(f"citations[{number}]", expected="string", got=url)
        known.append(url)
        yield _source(shown.setdefault(url, titles.get(url)), url)


def _are_shown(urls: Any, _: dict[str, Any], state: MappingState) -> bool:
    return bool(urls == state.data.get("sources"))


def _is_shown(url: Any, _: dict[str, Any], state: MappingState) -> bool:
    return url in state.data.get("titles", ())


def _has_its_title(title: Any, result: dict[str, Any], state: MappingState) -> bool:
    return bool(title is None or title == state.data.get("titles", {}).get(result.get("url")))


SOURCES = {
    "citations": taken_if(_are_shown),
    "search_results": [{"url": taken_if(_is_shown), "title": taken_if(_has_its_title)}],
}
"""What :func:`new_sources` takes; dates, snippets and the like stay in the extensions."""
