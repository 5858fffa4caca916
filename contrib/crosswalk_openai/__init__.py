"""OpenAI: ``/v1/chat/completions`` and ``/v1/completions``, also as Azure serves them, and what others add to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import (
    Access,
    Annotation,
    BatchFile,
    CallIds,
    ChatSaid,
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    Echo,
    ErrorInfo,
    FieldRow,
    MappingState,
    OpenAIChatDialect,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    VendorErrors,
    WayBack,
    accept_array,
    accept_integer,
    accept_object,
    accept_objects,
    accept_string,
    hookimpl,
    leave_mistyped,
    look_at,
    look_at_count,
    take_content,
    take_object,
    take_objects,
    take_same,
    take_string,
)

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["SOURCE_KEYS", "ChatDialect", "OpenAI", "plugin"]


# --------------------------------------------------------------------------------- dialect
# The additions to OpenAI's dialect by servers of this family: reasoning details, sources, audio, images, requests.
#
# Facts: provider document "OpenAI Chat Completions", sections 2, 3, 9 and 10.


NO_REASONING = " "
"""The reasoning of a call that has none, for DeepSeek and Moonshot, which refuse a call without any while they think.

It is a space because an empty text is refused by some of DeepSeek's models (NousResearch/hermes-agent 17341).
"""

_TEXT_KEYS: Mapping[str | None, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}
_OPAQUE_KEYS: Mapping[str | None, str] = {"reasoning.text": "signature", "reasoning.encrypted": "data"}
"""For each type of a reasoning detail: the keys of its text and its opaque value."""
_METADATA_KEYS = {"signature": "signature", "data": "encrypted"}
"""The key of an opaque value in the segment's metadata."""
_PLAIN_KEYS = ("reasoning", "reasoning_content")


def _take_details(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Say the reasoning of a message or delta in the order of its ``reasoning_details``.

    An opaque value, which must be sent back, is a segment. If the details have text, that text counts. The
    same text under a plain name is taken, and another one stays.

    Raises:
        WireTypeError: a detail, its type, text or opaque value has another type than the API promises.
    """
    sent_details = take_objects(part, key)
    details = [_take_detail(detail) for detail in sent_details]
    sent_details[:] = filter(None, sent_details)
    text_of_details = "".join(text or "" for text, _ in details)
    is_repeated = False
    if text_of_details:
        said.reasoning = ""  # the plain names say no other
        names = {key, *(name for name in _PLAIN_KEYS if part.get(name) == text_of_details)}
        is_repeated = state.own(Echo).is_repeated(names, text_of_details, said.choice, state)
        for name in _PLAIN_KEYS:
            if part.get(name) in (None, "", text_of_details):
                part.pop(name, None)
    for text, opaque_segment in details:
        if text and not is_repeated:
            said.first.append(ResponseDelta(reasoning_delta=text, choice=said.choice))
        if opaque_segment:
            said.first.append(ResponseDelta(segment=opaque_segment, choice=said.choice))


def _take_detail(detail: dict[str, Any]) -> tuple[str | None, Segment | None]:
    kind = take_string(detail, "type")
    text = take_string(detail, _TEXT_KEYS[kind]) if kind in _TEXT_KEYS else None
    name = _OPAQUE_KEYS.get(kind, "")
    opaque_value = take_string(detail, name) if name else None
    if not opaque_value:
        if kind is not None:
            detail["type"] = kind
        return text, None
    index = accept_integer(detail, "index")
    all_fields = {
        "type": kind,
        "id": accept_string(detail, "id"),
        "format": accept_string(detail, "format"),
        "index": index,
        _METADATA_KEYS[name]: opaque_value,
    }
    if detail and index is not None:
        detail["index"] = index  # identifies the remainder
    metadata = {key: value for key, value in all_fields.items() if value is not None}
    return text, Segment(SegmentType.REASONING, "", metadata)


def _take_content(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Take the text, and first the blocks of the type ``reasoning``, as Databricks sends them, with their signatures."""
    if type(part[key]) is list:
        said.first += _reasoning_of(part[key], said.choice)
    take_content(part, key, said, state)


def _reasoning_of(content: list[Any], choice: int) -> Iterator[ResponseDelta]:
    for block in content:
        if (
            type(block) is not dict
            or block.get("type") != "reasoning"
            or type(block.get("summary")) is not list
        ):
            continue
        for entry in take_objects(block, "summary"):
            take_same(entry, "type", "summary_text")
            text, signature = take_string(entry, "text"), take_string(entry, "signature")
            if text:
                yield ResponseDelta(reasoning_delta=text, choice=choice)
            if signature:
                yield ResponseDelta(
                    segment=Segment(SegmentType.REASONING, "", {"signature": signature}), choice=choice
                )
        if not any(block.get("summary", ())):
            block.clear()


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


SOURCE_KEYS = ("search_results", "citations")


def take_sources(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Return the new sources at the top of *event*, as segments.

    ``[1]`` in the text means the first of them. A list that does not continue the last one stays.
    """
    shown_sources = state.own(_Sources)
    results = [
        (result, accept_string(result, "url"), accept_string(result, "title"))
        for result in accept_objects(event, "search_results")
    ]
    titles = {url: title for _, url, title in results if url}
    listed_urls = accept_array(event, "citations")
    urls = listed_urls or list(titles)
    if not all(type(url) is str for url in urls):
        event["citations"] = listed_urls
        leave_mistyped(event, "citations")
    elif urls[: len(shown_sources.urls)] == shown_sources.urls:
        for url in urls[len(shown_sources.urls) :]:
            shown_sources.urls.append(url)
            yield ResponseDelta(segment=_source(shown_sources.titles.setdefault(url, titles.get(url)), url))
    elif listed_urls:
        event["citations"] = listed_urls
    for result, url, title in results:
        if url is not None and url not in shown_sources.titles:
            result["url"] = url
        if title is not None and title != shown_sources.titles.get(url):
            result["title"] = title


def _audio_segments(part: dict[str, Any]) -> Iterator[Segment]:
    """Return the audio of a message, or its piece in a delta, which the answer joins. Each piece is separate base64."""
    audio = accept_object(part, "audio")
    if not audio:
        return
    audio_values = {
        "data": accept_string(audio, "data"),
        "id": accept_string(audio, "id"),
        "expires_at": accept_integer(audio, "expires_at"),
        "transcript": accept_string(audio, "transcript"),
    }
    audio_fields: dict[str, Any] = {key: value for key, value in audio_values.items() if value is not None}
    if any(audio_fields.values()):
        data = audio_fields.pop("data", "")
        metadata = {"type": "audio", "encoding": "base64", "is_piece": True, **audio_fields}
        yield Segment(SegmentType.MEDIA, data, metadata)
    else:
        audio.update(audio_fields)


def _image_segments(part: dict[str, Any]) -> Iterator[Segment]:
    """Return the images of a message or delta: a URL, or the image as a ``data:`` URL."""
    for image in accept_objects(part, "images"):
        holder = accept_object(image, "image_url") or {}
        url = accept_string(holder, "url")
        if url:
            take_same(image, "type", "image_url")
            yield Segment(SegmentType.MEDIA, url, {"type": "image"})


def _shown(reader: Callable[[dict[str, Any]], Iterable[Segment]]) -> FieldRow:
    """The row of values that are segments, as *reader* returns them."""

    def take(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
        said.deltas += [ResponseDelta(segment=segment, choice=said.choice) for segment in reader(part)]

    return FieldRow("segments", take, silent=(None, []))


class ChatDialect(OpenAIChatDialect):
    """The hooks for a server that speaks OpenAI's dialect, with annotations, audio and images as segments."""

    text_paths: ClassVar[tuple[str, ...]] = OpenAIChatDialect.text_paths
    cumulative: ClassVar[tuple[str, ...]] = ("choices[].delta.reasoning_details[].format",)

    part_rows: ClassVar[Mapping[str, FieldRow]] = {
        "reasoning_details": FieldRow("segments", _take_details),
        **OpenAIChatDialect.part_rows,
        "content": FieldRow("text", _take_content, "text", (None,)),
        "annotations": _shown(_citations),
        "audio": _shown(_audio_segments),
        "images": _shown(_image_segments),
    }

    if TYPE_CHECKING:  # none of them leaves an error to the general rules

        def map_error(self, status: int | None, body: Any) -> ErrorInfo:
            """See the dialect."""

    def spell(self, event: dict[str, Any]) -> None:
        """See the dialect: the details of reasoning get their opaque values and, where one of them has it all, its text."""
        for choice in event.get("choices", ()):
            part = choice.get("message") or choice.get("delta") or {}
            details = part.get("reasoning_details") or ()
            for detail in details:
                if _METADATA_KEYS["data"] in detail:
                    detail["data"] = detail.pop(_METADATA_KEYS["data"])
            text_details = [detail for detail in details if detail.get("type") in _TEXT_KEYS]
            if len(text_details) == 1 and "reasoning_content" in part:
                text_details[0][_TEXT_KEYS[text_details[0]["type"]]] = part["reasoning_content"]
        super().spell(event)


# ------------------------------------------------------------------------ crosswalk openai
# OpenAI: ``/v1/chat/completions`` and ``/v1/completions``, also as Azure serves them.
#
# Facts: provider document "OpenAI Chat Completions". The look-alikes of other services are in ``lookalikes``.


# Verdicts of moderation: Azure's content filters and OpenAI's own (sections 2 and 8). They stay completely in the
# extensions. A verdict above harmless is also a segment, which is easier to find.


def _take_prompt_verdicts(event: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    for result in accept_objects(event, key):
        index = look_at(result, "prompt_index", int) or 0
        said.first += _verdict(result, {"target": "prompt", "prompt_index": index}, 0, state)


def _take_verdict(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Say the verdict of the filter last. It may be the only delta of its choice (section 8)."""
    if choice[key]:
        said.last = chain(said.last, _verdict(choice, {"target": "completion"}, said.choice, state))


def _take_finish_details(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    if choice.get("finish_reason") is None:
        said.finish = take_string(take_object(choice, key) or {}, "type") or None


class _Said(dict[tuple[Any, ...], tuple[Annotation, ...]]):
    """The last verdict on each prompt and each choice."""


def _verdict(
    holder: dict[str, Any], metadata: dict[str, Any], choice: int, state: MappingState
) -> Iterator[ResponseDelta]:
    findings = tuple(_findings(accept_object(holder, "content_filter_results") or {}, state))
    # Azure repeats the verdicts with every piece of text. Each verdict on a prompt or a choice is yielded once.
    last_findings = state.own(_Said)
    key = (*metadata.values(), choice)
    if findings and last_findings.get(key) != findings:
        last_findings[key] = findings
        yield ResponseDelta(segment=Segment(SegmentType.SAFETY, "", metadata, findings), choice=choice)


_CATEGORIES = frozenset(ContentFilterCategory)
_SEVERITIES = frozenset(ContentFilterSeverity)


def _findings(results: dict[str, Any], state: MappingState) -> Iterator[Annotation]:
    """Return the categories above harmless, in order. The four of the canonical vocabulary are always judged."""
    for category, value in results.items():
        for verdict in value if type(value) is list else [value]:
            if type(verdict) is not dict:
                continue
            blocked = look_at(verdict, "filtered", bool) or False
            detected = look_at(verdict, "detected", bool)
            severity = look_at(verdict, "severity", str)
            if category in _CATEGORIES and severity in _SEVERITIES:
                state.judge(
                    ContentFilterResult(
                        ContentFilterCategory(category), ContentFilterSeverity(severity), blocked
                    )
                )
            if blocked or detected or severity not in (None, "safe"):
                yield SafetyAnnotation(category, severity or ("detected" if detected else None), blocked)
                if citation := accept_object(verdict, "citation"):
                    yield CitationRef(source=look_at(citation, "URL", str))


def _take_moderation(event: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Say the findings of OpenAI's moderation in the input and in the output."""
    said.last = chain(said.last, _findings_of(accept_object(event, key) or {}))


def _findings_of(moderation: dict[str, Any]) -> Iterator[ResponseDelta]:
    for side, target in (("input", "prompt"), ("output", "completion")):
        for result in accept_objects(accept_object(moderation, side) or {}, "results"):
            if look_at(result, "flagged", bool):
                categories = accept_object(result, "categories") or {}
                annotations = [SafetyAnnotation(name) for name, is_so in categories.items() if is_so is True]
                yield ResponseDelta(segment=Segment(SegmentType.SAFETY, "", {"target": target}, annotations))


class OpenAI(ChatDialect):
    """The hooks for OpenAI's and Azure OpenAI's chat and completions."""

    title: ClassVar[str] = "OpenAI Chat Completions"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/openai.toml"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/chat"
    access: ClassVar[Access | None] = Access.by_name("https://api.openai.com/v1", "OPENAI")
    # Its reasoning models refuse ``max_tokens``.
    style: ClassVar[Mapping[str, Any]] = {
        "options": {"max_tokens": "max_completion_tokens"},
        "refusal": True,
        "null_content": False,  # servers that copy its API check for a text
    }
    hosted_tools: ClassVar[Mapping[str, Mapping[str, Any]]] = {"web_search": {}}  # an option of the request
    batch_file: ClassVar[BatchFile | None] = BatchFile()
    call_ids: ClassVar[CallIds | None] = CallIds(maximum=40)
    way_back: ClassVar[WayBack] = WayBack(
        takes_custom_calls=True, takes_media=("audio_id",), shows_pictures=True, names_speakers=True
    )
    call_names: ClassVar[str | None] = "[a-zA-Z0-9_-]{1,64}"
    endpoints: ClassVar[tuple[str, ...]] = (
        *ChatDialect.endpoints,
        "/openai/deployments/{deployment}/chat/completions",
        "/openai/deployments/{deployment}/completions",
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    is_original: ClassVar[bool] = True
    errors: ClassVar[VendorErrors | None] = VendorErrors(__name__, "openai")
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    timestamp_key: ClassVar[str | None] = "obfuscation"
    # OpenAI's padding, and the verdicts of Azure's filters (sections 3 and 8).
    event_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.event_rows,
        "prompt_filter_results": FieldRow("segments", _take_prompt_verdicts),
        "prompt_annotations": FieldRow("segments", _take_prompt_verdicts),  # of older versions
        "moderation": FieldRow("segments", _take_moderation),
    }
    choice_rows: ClassVar[Mapping[str, FieldRow]] = {
        "finish_details": FieldRow("finish_reason", _take_finish_details),
        **ChatDialect.choice_rows,
        "content_filter_results": FieldRow("segments", _take_verdict),
    }
    marks: ClassVar[tuple[str, ...]] = (
        "obfuscation",
        "prompt_filter_results",
        "choices[].content_filter_results",
    )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk.plugins import OPENAI_CHAT

        return self.built(request, table=OPENAI_CHAT)

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: only Azure has an inner error."""
        error = event.get("error") if isinstance(event, dict) else None
        if isinstance(error, dict) and isinstance(error.get("innererror"), dict):
            return Recognition.CERTAIN
        return super().recognizes(event)

    def spell(self, event: dict[str, Any]) -> None:
        """See the dialect. A word of the first models that read images is written to their path."""
        super().spell(event)
        for choice in event.get("choices", ()):
            if choice.get("finish_reason") == "max_tokens":
                choice["finish_details"] = {"type": choice.pop("finish_reason")}


plugin = OpenAI()
