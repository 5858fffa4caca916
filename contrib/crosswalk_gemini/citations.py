"""Citations and grounding: which words rest on which source (section 8).

Everything also stays in the extensions: the segments say what can be said in the same words for every provider.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from crosswalk.plugins import (
    CitationRef,
    Segment,
    SegmentType,
    accept_object,
    accept_objects,
    leave_mistyped,
    look,
    look_count,
)
from crosswalk_gemini.answer import Answer, Citation

__all__ = ["cited", "note_citations"]


def note_citations(candidate: dict[str, Any], answer: Answer) -> None:
    """Read the citations of *candidate*; :func:`cited` places them in the text once the answer has ended."""
    if "citationMetadata" in candidate and (citations := accept_object(candidate, "citationMetadata")):
        for name in ("citations", "citationSources"):  # Vertex, the Gemini API
            answer.citations += map(_citation, accept_objects(citations, name))
    if "groundingMetadata" in candidate and (grounding := accept_object(candidate, "groundingMetadata")):
        answer.grounding = _grounding(grounding) or answer.grounding


def cited(answer: Answer) -> list[Segment]:
    """What the text of *answer* rests on, a segment for each source of each stretch of words."""
    text = answer.text
    encoded = text.encode()
    segments = []
    for citation in (*answer.citations, *answer.grounding):
        ref = attrs.evolve(citation.source, span=_span(text, encoded, citation))
        segments.append(Segment(SegmentType.CITATION, citation.words or "", citation.about, (ref,)))
    return segments


def _citation(item: dict[str, Any]) -> Citation:
    start, end = _place(item)
    said = {name: look(item, name, str) for name in ("title", "license")}
    source = CitationRef(source=look(item, "uri", str))
    return Citation(source, start, end, None, {name: value for name, value in said.items() if value})


def _place(item: dict[str, Any]) -> tuple[int, int | None]:
    """The first byte that is cited, which is left out where it is 0, and the byte after the last; ``None`` if unknown."""
    start, end = (look_count(item, name) for name in ("startIndex", "endIndex"))
    return start or 0, None if start is None and item.get("startIndex") is not None else end


def _grounding(grounding: dict[str, Any]) -> list[Citation]:
    """Each support with each of its sources; then the sources that support nothing in particular."""
    accept_objects(grounding, "groundingChunks")  # notes what is none
    chunks = grounding.get("groundingChunks")
    sources = {
        number: _source(chunk)
        for number, chunk in enumerate(chunks if type(chunks) is list else ())
        if type(chunk) is dict
    }
    found: list[Citation] = []
    used: set[int] = set()
    for support in accept_objects(grounding, "groundingSupports"):
        segment = accept_object(support, "segment") or {}
        text = look(segment, "text", str)
        start, end = _place(segment)
        indices = _indices(support)
        used.update(indices)
        known = [sources[index] for index in indices if index in sources]
        found += [Citation(ref, start, end, text, about) for ref, about in known or [(CitationRef(), {})]]
    bare = [source for number, source in sources.items() if number not in used]
    return found + [Citation(ref, about=about) for ref, about in bare if ref.source or about]


def _indices(support: dict[str, Any]) -> list[int]:
    """Which sources a support has."""
    indices = support.get("groundingChunkIndices")
    found = [index for index in indices if type(index) is int and index >= 0] if type(indices) is list else []
    if indices is not None and found != indices:
        leave_mistyped(support, "groundingChunkIndices")
    return found


def _source(chunk: dict[str, Any]) -> tuple[CitationRef, dict[str, str]]:
    """Reference and title of ``{web | retrievedContext | maps | image: {…}}``."""
    for kind in ("web", "retrievedContext", "maps", "image"):
        if kind in chunk and (origin := accept_object(chunk, kind)) is not None:
            names = [look(origin, name, str) for name in ("uri", "sourceUri", "imageUri")]
            ids = [look(origin, name, str) for name in ("placeId", "documentName")]
            title = look(origin, "title", str)
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
