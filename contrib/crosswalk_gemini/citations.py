"""Citations and grounding: which words rest on which source (section 8).

Everything also stays in the extensions: the segments say what can be said in the same words for every provider.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from crosswalk import (
    CitationRef,
    Segment,
    SegmentType,
    WireTypeError,
    get_array,
    get_count,
    get_object,
    get_string,
    require_object,
)
from crosswalk_gemini.answer import Answer, Citation

__all__ = ["cited", "note_citations"]


def note_citations(candidate: dict[str, Any], place: str, answer: Answer) -> None:
    """Read the citations of *candidate*; :func:`cited` places them in the text once the answer has ended.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    citations = get_object(candidate, "citationMetadata", place) or {}
    for name in ("citations", "citationSources"):  # Vertex, the Gemini API
        for number, item in enumerate(get_array(citations, name, f"{place}.citationMetadata")):
            spot = f"{place}.citationMetadata.{name}[{number}]"
            answer.citations.append(_citation(require_object(item, spot), spot))
    grounding = get_object(candidate, "groundingMetadata", place)
    if grounding:
        found = _grounding(grounding, f"{place}.groundingMetadata")
        answer.grounding = found or answer.grounding


def cited(answer: Answer) -> list[Segment]:
    """What the text of *answer* rests on, a segment for each source of each stretch of words."""
    text = answer.text
    encoded = text.encode()
    segments = []
    for citation in (*answer.citations, *answer.grounding):
        ref = attrs.evolve(citation.source, span=_span(text, encoded, citation))
        segments.append(Segment(SegmentType.CITATION, citation.words or "", citation.about, (ref,)))
    return segments


def _citation(item: dict[str, Any], place: str) -> Citation:
    start = get_count(item, "startIndex", place) or 0
    end = get_count(item, "endIndex", place)
    said = {name: get_string(item, name, place) for name in ("title", "license")}
    source = CitationRef(source=get_string(item, "uri", place))
    return Citation(source, start, end, None, {name: value for name, value in said.items() if value})


def _grounding(grounding: dict[str, Any], place: str) -> list[Citation]:
    """Each support with each of its sources; then the sources that support nothing in particular."""
    chunks = get_array(grounding, "groundingChunks", place)
    sources = [
        _source(require_object(chunk, f"{place}.groundingChunks[{n}]"), f"{place}.groundingChunks[{n}]")
        for n, chunk in enumerate(chunks)
    ]
    found: list[Citation] = []
    used: set[int] = set()
    for number, item in enumerate(get_array(grounding, "groundingSupports", place)):
        spot = f"{place}.groundingSupports[{number}]"
        support = require_object(item, spot)
        segment = get_object(support, "segment", spot) or {}
        text = get_string(segment, "text", f"{spot}.segment")
        start = get_count(segment, "startIndex", f"{spot}.segment") or 0
        end = get_count(segment, "endIndex", f"{spot}.segment")
        indices = get_array(support, "groundingChunkIndices", spot)
        for index in indices:
            if type(index) is not int or index < 0:
                raise WireTypeError(f"{spot}.groundingChunkIndices", expected="counts", got=index)
        used.update(indices)
        known = [sources[index] for index in indices if index < len(sources)]
        found += [Citation(ref, start, end, text, about) for ref, about in known or [(CitationRef(), {})]]
    bare = [source for index, source in enumerate(sources) if index not in used]
    return found + [Citation(ref, about=about) for ref, about in bare if ref.source or about]


def _source(chunk: dict[str, Any], place: str) -> tuple[CitationRef, dict[str, str]]:
    """Reference and title of ``{web | retrievedContext | maps | image: {…}}``."""
    for kind in ("web", "retrievedContext", "maps", "image"):
        origin = get_object(chunk, kind, place)
        if origin is not None:
            where = f"{place}.{kind}"
            names = [get_string(origin, name, where) for name in ("uri", "sourceUri", "imageUri")]
            ids = [get_string(origin, name, where) for name in ("placeId", "documentName")]
            title = get_string(origin, "title", where)
            ref = CitationRef(_first(ids), _first(names))
            return ref, {"title": title} if title else {}
    return CitationRef(), {}


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


def _span(text: str, encoded: bytes, citation: Citation) -> tuple[int, int] | None:
    """The characters of *text* that are cited; ``None`` where they are not found.

    The API counts UTF-8 bytes, and where it names the words as well, they have the last say.
    """
    words = citation.words
    there = _decoded(encoded, citation.start, citation.end)
    if there is not None and words in (None, there):
        first = len(encoded[: citation.start].decode())
        return first, first + len(there)
    if words and text.count(words) == 1:
        first = text.index(words)
        return first, first + len(words)
    return None


def _decoded(encoded: bytes, start: int, end: int | None) -> str | None:
    """The text from byte *start* up to *end*; ``None`` where they do not lie between characters of it."""
    if end is None or not start <= end <= len(encoded):
        return None
    try:
        encoded[:start].decode()
        return encoded[start:end].decode()
    except UnicodeDecodeError:
        return None
