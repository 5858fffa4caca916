"""The additions to OpenAI's dialect by servers of this family: reasoning details, sources, audio, images, requests.

Facts: provider document "OpenAI Chat Completions", sections 2, 3, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import (
    CitationRef,
    Echo,
    MappingState,
    OpenAIChatDialect,
    ResponseDelta,
    Segment,
    SegmentType,
    accept_array,
    accept_integer,
    accept_object,
    accept_objects,
    accept_string,
    hookimpl,
    leave_mistyped,
    look_at,
    look_at_count,
    take_objects,
    take_same,
    take_string,
)

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest


NO_REASONING = " "
"""The reasoning of a call that has none, for DeepSeek and Moonshot, which refuse a call without any while they think.

It is a space because an empty text is refused by some of DeepSeek's models (NousResearch/hermes-agent 17341).
"""

_TEXTS: Mapping[str | None, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}
_OPAQUE: Mapping[str | None, str] = {"reasoning.text": "signature", "reasoning.encrypted": "data"}
"""For each type of a reasoning detail: the keys of its text and its opaque value."""
_NAMES = {"signature": "signature", "data": "encrypted"}
"""The key of an opaque value in the segment's metadata."""
_PLAIN = ("reasoning", "reasoning_content")


class ChatDialect(OpenAIChatDialect):
    """The hooks for a server that speaks OpenAI's dialect, with annotations, audio and images as segments.

    Attributes:
        style: the differences of its requests from OpenAI's, as arguments of an ``OpenAIChatStyle``.
    """

    text_paths: ClassVar[tuple[str, ...]] = OpenAIChatDialect.text_paths
    cumulative: ClassVar[tuple[str, ...]] = ("choices[].delta.reasoning_details[].format",)
    style: ClassVar[Mapping[str, Any]] = {}

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return self.built(request)

    def built(self, request: ChatRequest, **more: Any) -> HTTPRequest:
        """Return *request* in this server's style, refined by *more*."""
        from crosswalk.plugins import OpenAIChatStyle, build_openai_chat_request

        fields = {"reasoning": self.reasoning_name, **self.style, **more}
        style = OpenAIChatStyle(hosted_tools=self.hosted_tools, **fields)
        return build_openai_chat_request(request, style)

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """Return the deltas of one choice: its reasoning in the order of its details, then the others."""
        deltas = super().choice_deltas(choice, part, index, state, whole=whole)
        return _take_details(part, index, state, deltas) if "reasoning_details" in part else deltas

    def spell(self, event: dict[str, Any]) -> None:
        """See the dialect: the details of reasoning get their opaque values and, where one of them has it all, its text."""
        for choice in event.get("choices", ()):
            part = choice.get("message") or choice.get("delta") or {}
            details = part.get("reasoning_details") or ()
            for detail in details:
                if _NAMES["data"] in detail:
                    detail["data"] = detail.pop(_NAMES["data"])
            texts = [detail for detail in details if detail.get("type") in _TEXTS]
            if len(texts) == 1 and "reasoning_content" in part:
                texts[0][_TEXTS[texts[0]["type"]]] = part["reasoning_content"]
        super().spell(event)

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> Iterator[Segment]:
        """Return the segments of a message or delta other than text and tool calls."""
        for name, segments in _SEGMENTS.items():
            if name in part:
                yield from segments(part)


def _take_details(
    part: dict[str, Any], choice: int, state: MappingState, others: Iterable[ResponseDelta]
) -> Iterator[ResponseDelta]:
    """Return the reasoning of a message or delta in the order of its ``reasoning_details``, then the deltas *others*.

    An opaque value, which must be sent back, is a segment. If the details have text, that text counts. The
    same text under a plain name is taken, and another one stays.

    Raises:
        WireTypeError: a detail, its type, text or opaque value has another type than the API promises.
    """
    sent = take_objects(part, "reasoning_details")
    details = [_take_detail(detail) for detail in sent]
    sent[:] = filter(None, sent)
    raw = "".join(text or "" for text, _ in details)
    extra: dict[str, Any] = {}
    is_repeated = False
    if raw:
        names = {"reasoning_details", *(name for name in _PLAIN if part.get(name) == raw)}
        is_repeated = state.own(Echo).is_repeated(names, raw, choice, state)
        extra = {name: part.pop(name) for name in _PLAIN if part.get(name) not in (None, "", raw)}
        for name in _PLAIN:
            part.pop(name, None)
    for text, opaque in details:
        if text and not is_repeated:
            yield ResponseDelta(reasoning_delta=text, choice=choice)
        if opaque:
            yield ResponseDelta(segment=opaque, choice=choice)
    yield from others
    part.update(extra)


def _take_detail(detail: dict[str, Any]) -> tuple[str | None, Segment | None]:
    kind = take_string(detail, "type")
    text = take_string(detail, _TEXTS[kind]) if kind in _TEXTS else None
    name = _OPAQUE.get(kind, "")
    opaque = take_string(detail, name) if name else None
    if not opaque:
        if kind is not None:
            detail["type"] = kind
        return text, None
    index = accept_integer(detail, "index")
    about = {
        "type": kind,
        "id": accept_string(detail, "id"),
        "format": accept_string(detail, "format"),
        "index": index,
        _NAMES[name]: opaque,
    }
    if detail and index is not None:
        detail["index"] = index  # identifies the remainder
    known = {key: value for key, value in about.items() if value is not None}
    return text, Segment(SegmentType.REASONING, "", known)


def _citations(part: dict[str, Any]) -> Iterator[Segment]:
    """The ``url_citation`` annotations of a message or delta, each as a segment behind the text that it covers."""
    for annotation in accept_objects(part, "annotations"):
        kind = look_at(annotation, "type", str)
        citation = accept_object(annotation, "url_citation") if kind == "url_citation" else None
        if not citation:
            continue
        del annotation["type"]
        title, url = accept_string(citation, "title"), accept_string(citation, "url")
        start, end = look_at_count(citation, "start_index"), look_at_count(citation, "end_index")
        span = None
        if start is not None and end is not None:
            span = start, end
            del citation["start_index"], citation["end_index"]
        yield _source(title, url, span)


def _source(title: str | None, url: str | None, span: tuple[int, int] | None = None) -> Segment:
    return Segment(SegmentType.CITATION, title or "", annotations=(CitationRef(None, url, span),))


class _Sources:
    """The sources that were shown, in order, and their titles by address."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.titles: dict[str | None, str | None] = {}


def take_sources(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Return the new sources at the top of *event*, as segments.

    ``[1]`` in the text means the first of them. A list that does not continue the last one stays.
    """
    shown = state.own(_Sources)
    results = [
        (result, accept_string(result, "url"), accept_string(result, "title"))
        for result in accept_objects(event, "search_results")
    ]
    titles = {url: title for _, url, title in results if url}
    listed = accept_array(event, "citations")
    urls = listed or list(titles)
    if not all(type(url) is str for url in urls):
        event["citations"] = listed
        leave_mistyped(event, "citations")
    elif urls[: len(shown.urls)] == shown.urls:
        for url in urls[len(shown.urls) :]:
            shown.urls.append(url)
            yield ResponseDelta(segment=_source(shown.titles.setdefault(url, titles.get(url)), url))
    elif listed:
        event["citations"] = listed
    for result, url, title in results:
        if url is not None and url not in shown.titles:
            result["url"] = url
        if title is not None and title != shown.titles.get(url):
            result["title"] = title


def _audio_segments(part: dict[str, Any]) -> Iterator[Segment]:
    """Return the audio of a message, or its piece in a delta. Each piece is separate base64."""
    audio = accept_object(part, "audio")
    if not audio:
        return
    taken = {
        "data": accept_string(audio, "data"),
        "id": accept_string(audio, "id"),
        "expires_at": accept_integer(audio, "expires_at"),
        "transcript": accept_string(audio, "transcript"),
    }
    payload: dict[str, Any] = {key: value for key, value in taken.items() if value is not None}
    if any(payload.values()):
        data = payload.pop("data", "")
        yield Segment(SegmentType.MEDIA, data, {"type": "audio", "encoding": "base64", **payload})
    else:
        audio.update(payload)


def _image_segments(part: dict[str, Any]) -> Iterator[Segment]:
    """Return the images of a message or delta: a URL, or the image as a ``data:`` URL."""
    for image in accept_objects(part, "images"):
        holder = accept_object(image, "image_url") or {}
        url = accept_string(holder, "url")
        if url:
            take_same(image, "type", "image_url")
            yield Segment(SegmentType.MEDIA, url, {"type": "image"})


_SEGMENTS = {"annotations": _citations, "audio": _audio_segments, "images": _image_segments}
