"""The way back: selects the parts of earlier turns that are sent to the provider of the new request.

Everything opaque has an owner, the provider that sent it, and no other provider ever sees it. :func:`with_own_parts` decides
for each part of each turn by the facts that the provider declares (:class:`~crosswalk.plugins.WayBack`). So a plugin
gets a request with only the parts that it may send. Parts that are left out are named, with their message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from crosswalk.plugin.hooks import ServerTool, WayBack
from crosswalk.request import ChatRequest, Dropped, Turn, in_words
from crosswalk.service.turns import NO_ANSWER, content_parts, is_of, known_media_type, message_of, segments_of
from crosswalk.service.way_back.history import has_media, with_words
from crosswalk.service.way_back.missing import NO_PLACE, leaves
from crosswalk.service.way_back.state import answer_state, without_fields, without_items
from crosswalk.types.json import dump_json
from crosswalk.types.message import ChatMessage, ImagePart, Role, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import FinishReason, Segment, SegmentType, altered

_PLACE: Final = Segment(SegmentType.TEXT, "")
"""The placeholder of a part that is left out, which keeps the positions of later parts. Empty texts are never sent."""
_CUT: Final = (FinishReason.LENGTH, FinishReason.CANCELLED, FinishReason.ERROR)
_VERDICTS: Final = (SegmentType.SAFETY, SegmentType.ERROR)
_BLOCK_KEYS: Final = ("id", "name")


def with_own_parts(
    request: ChatRequest, facts: WayBack, *, is_official: bool, takes_media: bool = True
) -> tuple[ChatRequest, tuple[Dropped, ...]]:
    """Return *request* with the parts of earlier turns that its provider takes, and the parts that are left out, by message.

    Args:
        request: the request. Its provider is the one that it is sent to.
        facts: what that provider takes.
        is_official: whether the request is sent to the provider's own host.
        takes_media: whether the model takes images, sounds and files.
    """
    if not takes_media:
        facts = attrs.evolve(facts, takes_media=(), shows_pictures=False)
    sorter = _Sorter(request, facts, is_official=is_official, takes_media=takes_media)
    turns = tuple(sorter.sorted(number, turn) for number, turn in enumerate(request.messages))
    turns = sorter.shown(turns)
    return altered(request, messages=turns), sorter.dropped()


class _Sorter:
    """Sorts the parts of the turns of *request* into those that are sent and those that are named."""

    def __init__(self, request: ChatRequest, facts: WayBack, *, is_official: bool, takes_media: bool) -> None:
        self._request = request
        self._facts = facts
        self._is_official = is_official
        self._takes_media = takes_media
        self._reasons: dict[tuple[int, str], None] = {}
        self._pictures: dict[int, list[ImagePart]] = {}  # by the user's message that shows them
        self._halves = _Halves(request, facts.server_tools)

    def dropped(self) -> tuple[Dropped, ...]:
        """The parts that were left out: each reason once for each message."""
        return tuple(
            Dropped(f"messages[{number}]", reason, refuses=False) for number, reason in sorted(self._reasons)
        )

    def sorted(self, number: int, turn: Turn) -> Turn:
        """Return the turn to send for *turn*, which is the message *number*."""
        message = self._message(number, message_of(turn))
        if not isinstance(turn, ChatResponse):
            return message
        if is_of(turn, self._request):
            return self._own(number, attrs.evolve(turn, message=message))
        return self._foreign(number, attrs.evolve(turn, message=message))

    def shown(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        """Return *turns*, with the pictures of answers in the user's messages that follow them."""
        results = list(turns)
        for number, pictures in self._pictures.items():
            message = message_of(turns[number])
            results[number] = attrs.evolve(message, content=(*pictures, *content_parts(message)))
        return tuple(results)

    def _name(self, number: int, reason: str) -> None:
        self._reasons[number, reason] = None

    def _message(self, number: int, message: ChatMessage) -> ChatMessage:
        facts = self._facts
        if message.role is Role.SYSTEM and facts.moves_system:
            before = map(message_of, self._request.messages[:number])
            if any(other.role is not Role.SYSTEM for other in before):
                self._name(number, "moved to the beginning: the API has system messages there alone")
        if message.name and message.role is not Role.TOOL and not facts.names_speakers:
            self._name(number, f"the speaker's name: {NO_PLACE}")
            message = attrs.evolve(message, name=None)
        if message.is_error and not facts.knows_failures:
            self._name(number, "that the tool has failed: the API has no word for it")
        if not self._takes_media and has_media(message):
            self._name(number, "images, sounds and files: the model takes text alone")
            message = attrs.evolve(message, content=with_words(message))
        calls = message.tool_calls or ()
        if not facts.takes_custom_calls and any(call.is_custom for call in calls):
            return attrs.evolve(message, tool_calls=[_as_function(call) for call in calls])
        return message

    # ------------------------------------------------------------------------------------ answers

    def _own(self, number: int, turn: ChatResponse) -> ChatResponse:
        segments = [*segments_of(turn)]
        gone: set[object] = set()
        is_cut = turn.finish_reason in _CUT
        for position, segment in enumerate(segments):
            sent = self._own_part(number, segment, turn, is_last=is_cut and position == len(segments) - 1)
            if sent is not segment:
                segments[position] = sent
                gone.add(segment.metadata.get("id"))
        turn = without_items(turn, gone - {None})
        remaining, refused = without_fields(turn, self._facts.refuses)
        for name in refused:
            self._name(number, f"{name}: the API does not take it back")
        return self._with_words(attrs.evolve(remaining, segments=segments), turn)

    def _own_part(self, number: int, segment: Segment, turn: ChatResponse, *, is_last: bool) -> Segment:
        """Return what is sent of *segment*, a part of the provider's own *turn* (*is_last* if it may have been cut)."""
        facts = self._facts
        match segment.type:
            case SegmentType.REASONING if facts.needs_signature and not _is_sealed(segment):
                if is_last:
                    self._name(number, "reasoning that was cut before its signature")
                    return _PLACE
                if self._is_official:
                    self._name(number, "reasoning without a signature")
                    return _PLACE
            case SegmentType.TOOL_CALL if "type" in segment.metadata:
                if (half := self._halves.of(number, segment)) is not None:
                    self._name(number, half)
                    return _PLACE
            case SegmentType.TOOL_CALL:
                return self._call(number, segment, turn)
            case SegmentType.CITATION if not facts.takes_citations:
                self._name(number, "citations: the API does not take them back")
                return _PLACE
            case SegmentType.MEDIA:
                return self._medium(number, segment, turn, facts.takes_media)
            case kind if kind in _VERDICTS:
                self._name(number, _verdict(segment))
        return segment

    def _foreign(self, number: int, turn: ChatResponse) -> ChatResponse:
        """Return *turn*, an answer of another provider, without the parts that only that provider understands."""
        owner = turn.metadata.provider_id
        segments: list[Segment] = []
        calls = message_of(self._request.messages[number]).tool_calls or ()
        kinds = {call.kind for call in calls}  # "custom" is not state: the call is sent as a function
        state = {key for key, value in leaves(answer_state(turn)) if key != "type" or value not in kinds}
        for segment in segments_of(turn):
            segments += self._foreign_part(number, segment, turn)
            state |= set(segment.metadata) - _PLAIN_KEYS.get(segment.type, set(segment.metadata))
            if segment.annotations and segment.type is SegmentType.TEXT:
                self._name(number, f"citations of another provider ({owner})")
        if not any(segment.content or segment.metadata for segment in segments):
            turn, segments = self._told(number, turn)
        if state:
            self._name(number, f"state of another provider ({owner}): {', '.join(sorted(state))}")
        metadata = attrs.evolve(turn.metadata, extensions={})
        return self._with_words(attrs.evolve(turn, segments=segments, metadata=metadata), turn)

    def _told(self, number: int, turn: ChatResponse) -> tuple[ChatResponse, list[Segment]]:
        """Return *turn*, of which nothing can be sent, in words: what its server's tools did, or that it says nothing."""
        tools = [segment for segment in turn.segments if segment.type is SegmentType.TOOL_CALL]
        words = [_in_words(segment) for segment in tools if "type" in segment.metadata]
        if words:
            reason = _of_server(turn)
            del self._reasons[number, reason]
            self._name(number, f"{reason}: it is told in words")
        has_more = any(segment.type not in _VERDICTS for segment in turn.segments) or answer_state(turn)
        text = "\n".join(words or ([NO_ANSWER] if has_more else []))
        message = attrs.evolve(turn.message, content=text or turn.message.content)
        return attrs.evolve(turn, message=message), [Segment(SegmentType.TEXT, text)] if text else []

    @staticmethod
    def _with_words(turn: ChatResponse, before: ChatResponse) -> ChatResponse:
        """Return *turn* with a message that matches its segments, including the texts that replace media."""
        media = [segment for segment in before.segments if segment.type is SegmentType.MEDIA]
        if not media:
            return turn
        texts = [segment.content for segment in before.segments if segment.type is SegmentType.TEXT]
        words = [segment.content for segment in turn.segments if segment.type is SegmentType.TEXT]
        words = [text for text in words if text and text not in texts]
        content = "\n\n".join(filter(None, [turn.message.text, *words]))
        return attrs.evolve(turn, message=attrs.evolve(turn.message, content=content))

    def _foreign_part(self, number: int, segment: Segment, turn: ChatResponse) -> Iterable[Segment]:
        owner = turn.metadata.provider_id
        match segment.type:
            case SegmentType.TEXT | SegmentType.REFUSAL:
                return [Segment(segment.type, segment.content)] if segment.content else ()
            case SegmentType.REASONING:
                if self._facts.takes_reasoning and segment.content and not _is_sealed(segment):
                    return [Segment(segment.type, segment.content)]
                self._name(number, f"reasoning of another provider ({owner})")
            case SegmentType.TOOL_CALL if "type" in segment.metadata:
                self._name(number, _of_server(turn))
            case SegmentType.TOOL_CALL:
                call = self._call(number, segment, turn)
                payload = {key: call.metadata[key] for key in _BLOCK_KEYS if key in call.metadata}
                return [] if call is _PLACE else [Segment(call.type, call.content, payload)]
            case SegmentType.CITATION:
                self._name(number, f"citations of another provider ({owner})")
            case SegmentType.MEDIA:
                return [self._medium(number, segment, turn, ())]
            case _:
                self._name(number, _verdict(segment))
        return ()

    def _call(self, number: int, segment: Segment, turn: ChatResponse) -> Segment:
        """Return the client's call that *segment* shows, as the provider takes it."""
        calls = {call.id: call for call in turn.message.tool_calls or ()}
        call = calls.get(str(segment.metadata.get("id")))
        if call is None or "name" not in segment.metadata:
            self._name(number, "a call that was not finished")
            return _PLACE
        if call.arguments == segment.content:
            return segment
        return attrs.evolve(segment, content=call.arguments)  # it was free text

    # ------------------------------------------------------------------------------------ media

    def _medium(self, number: int, segment: Segment, turn: ChatResponse, takes: Sequence[str]) -> Segment:
        """Return *segment* of *turn* unchanged if the provider *takes* its kind, otherwise as a text."""
        raw = segment.metadata
        kind = _kind_of(segment)
        if raw.get("thought"):
            self._name(number, f"{_ARTICLES.get(kind, 'a file')} of a thought")
            return _PLACE
        if kind in takes:
            return segment
        if kind == "audio":
            return self._sound(number, segment, turn, takes)
        picture = _picture_of(segment) if kind == "image" else None
        user = self._next_user(number) if picture is not None and self._facts.shows_pictures else None
        if picture is not None and user is not None:
            self._name(number, f"moved to messages[{user}]: a picture that the user shows")
            self._pictures.setdefault(user, []).append(picture)
            note = "the next message of the user shows it"
            return Segment(SegmentType.TEXT, in_words(_NOUNS[kind], picture.media_type, note))
        self._name(number, f"{_ARTICLES.get(kind, 'a file')}: it is told in words")
        return Segment(SegmentType.TEXT, in_words(_NOUNS[kind], *_about(segment, picture)))

    def _sound(self, number: int, segment: Segment, turn: ChatResponse, takes: Sequence[str]) -> Segment:
        """Return *segment*, a sound of *turn* or a piece of one: by its id, as the transcript of all pieces, or in words."""
        pieces = [one for one in turn.segments if one.type is SegmentType.MEDIA and _kind_of(one) == "audio"]
        about: dict[str, Any] = {}
        for piece in pieces:
            about = {**piece.metadata, **about}
        if "audio_id" in takes and "id" in about and _lasts(about.get("expires_at")):
            return segment
        if segment is not pieces[0]:
            return _PLACE
        transcript = "".join(str(piece.metadata.get("transcript") or "") for piece in pieces)
        if transcript:
            self._name(number, "a sound: its transcript is sent")
            return Segment(SegmentType.TEXT, transcript)
        self._name(number, "a sound: it is told in words")
        return Segment(SegmentType.TEXT, in_words("a sound", *_about(segment, None)))

    def _next_user(self, number: int) -> int | None:
        """Return the user's next message after *number*, skipping results of tools."""
        for later in range(number + 1, len(self._request.messages)):
            role = message_of(self._request.messages[later]).role
            if role is not Role.TOOL:
                return later if role is Role.USER else None
        return None


def _of_server(turn: ChatResponse) -> str:
    return f"a server tool of another provider ({turn.metadata.provider_id})"


_LINKS: Final = ("id", "type", "status", "index")
"""Metadata of a server tool's call that say nothing about it."""
_OPAQUE: Final = ("encrypted", "signature", "fingerprint")
"""Words in the names of fields that only their provider can read."""


def _in_words(segment: Segment) -> str:
    """Return the text for *segment*, what a server's tool was asked or gave: its kind, and its fields as JSON."""
    raw = segment.metadata.thawed()
    fields = {key: value for key, value in raw.items() if key not in _LINKS and not key.endswith("_id")}
    fields = _readable({key: value for key, value in fields.items() if value is not None})
    about = dump_json(fields).decode() if fields else None
    return in_words(str(raw["type"]), segment.content or None, about)


def _readable(value: Any) -> Any:
    """Return *value* without the fields that only their provider can read."""
    if isinstance(value, dict):
        return {
            key: _readable(inner) for key, inner in value.items() if not any(word in key for word in _OPAQUE)
        }
    return [_readable(inner) for inner in value] if isinstance(value, list) else value


_PLAIN_KEYS: Final[Mapping[SegmentType, set[str]]] = {
    SegmentType.TEXT: set(),
    SegmentType.REFUSAL: set(),
    SegmentType.TOOL_CALL: {*_BLOCK_KEYS},
}
"""Metadata of a part that are not state. Parts of other types are named for themselves."""
_ARTICLES: Final = {"image": "a picture", "audio": "a sound", "video": "a video"}
_NOUNS: Final = {"image": "an image", "audio": "a sound", "video": "a video", "file": "a file"}


def _about(segment: Segment, picture: ImagePart | None) -> Iterator[str]:
    """Return the type of the medium in *segment*, and its address if it has one."""
    media_type = segment.metadata.get("media_type") or (picture and picture.media_type)
    if isinstance(media_type, str):
        yield media_type
    if segment.content.startswith(("http://", "https://")):
        yield segment.content


def _verdict(segment: Segment) -> str:
    what = "a verdict" if segment.type is SegmentType.SAFETY else "an error"
    return f"{what}: no API takes it back"


def _is_sealed(segment: Segment) -> bool:
    """Whether only its provider can read or verify *segment*."""
    return bool(segment.metadata.keys() & {"signature", "encrypted"})


def _as_function(call: ToolCall) -> ToolCall:
    """Return *call*, with free text as the one argument ``input``."""
    if not call.is_custom:
        return call
    return attrs.evolve(call, arguments=dump_json(call.parsed()).decode(), kind=None)


def _kind_of(segment: Segment) -> str:
    """Return ``image``, ``audio`` or ``video``, or ``file`` if the kind is unknown."""
    raw = segment.metadata
    for word in (raw.get("type"), str(raw.get("media_type", "")).partition("/")[0]):
        if word in _ARTICLES:
            return str(word)
    if raw.get("type") == "image_generation_call" or known_media_type(segment.content).startswith("image/"):
        return "image"
    return "image" if segment.content.startswith("data:image/") else "file"


def _picture_of(segment: Segment) -> ImagePart | None:
    """Return the picture in *segment* if it has data of a known type."""
    head, comma, data = segment.content.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return ImagePart(data=data, media_type=head[len("data:") : -len(";base64")])
    media_type = segment.metadata.get("media_type") or known_media_type(segment.content)
    if segment.metadata.get("encoding") != "base64" or not isinstance(media_type, str) or not media_type:
        return None
    return ImagePart(data=segment.content, media_type=media_type)


def _lasts(expires_at: object) -> bool:
    """Whether a time, in seconds since 1970, is in the future. True if it is unknown."""
    return not isinstance(expires_at, int | float) or expires_at > datetime.now(UTC).timestamp()


class _Halves:
    """The calls of server tools that have no result, and the results that have no call.

    A call may wait for its result as long as only results of the client's own tools follow.
    """

    def __init__(self, request: ChatRequest, tools: Sequence[ServerTool]) -> None:
        self._tools = tools
        self._last = _last_answer(request.messages)
        self._calls: set[object] = set()
        self._results: set[object] = set()
        for number, turn in enumerate(request.messages if tools else ()):
            if isinstance(turn, ChatResponse) and is_of(turn, request):
                for segment in turn.segments:
                    for tool in tools:
                        if tool.is_call(segment.metadata.get("type")):
                            self._calls.add(self._key(tool, "id", number, segment))
                        elif tool.is_result(segment.metadata.get("type")):
                            self._results.add(self._key(tool, tool.id, number, segment))

    @staticmethod
    def _key(tool: ServerTool, key: str, number: int, segment: Segment) -> object:
        """Return the name of a call: its id. Without ids a call and its result are in one answer."""
        return segment.metadata.get(key) or (tool.call, number)

    def of(self, number: int, segment: Segment) -> str | None:
        """Return why *segment* of the answer *number* cannot be sent alone, or ``None`` if it can."""
        for tool in self._tools:
            if tool.is_call(segment.metadata.get("type")):
                is_answered = self._key(tool, "id", number, segment) in self._results
                return (
                    None if is_answered or number == self._last else "a server tool's call without a result"
                )
            if tool.is_result(segment.metadata.get("type")):
                is_called = self._key(tool, tool.id, number, segment) in self._calls
                return None if is_called else "a server tool's result without a call"
        if segment.metadata.get("status") in _PENDING and number != self._last:
            return "a server tool's call without a result"
        return None


_PENDING: Final = ("in_progress", "searching", "interpreting", "generating", "calling", "incomplete")
"""The states of an item of the Responses API that mean its tool is still at work, or was cut short."""


def _last_answer(turns: Sequence[Turn]) -> int | None:
    """Return the answer at the end of *turns*, before results of its calls, or ``None`` if there is none."""
    for number in reversed(range(len(turns))):
        role = message_of(turns[number]).role
        if role is not Role.TOOL:
            return number if role is Role.ASSISTANT else None
    return None
