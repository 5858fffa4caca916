"""The answer while it is received: its choices, usage and extensions, each fact stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from math import isfinite
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeAlias

import orjson

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import clean_message
from crosswalk.types.delta import Correction, ResponseDelta, said
from crosswalk.types.json import (
    EMPTY_OBJECT,
    PIECES,
    Arrays,
    MergeRules,
    Placed,
    adopted,
    copy_json,
    dump_json,
    is_finite,
    merge,
    placed,
)
from crosswalk.types.message import CallKind, ChatMessage, Role, ToolCall, ToolCallDelta
from crosswalk.types.response import Alternative, ChatResponse, with_unknown_parts
from crosswalk.types.usage import (
    Provenance,
    ResponseMetadata,
    UsageDetails,
    UsageInfo,
    counted_tokens,
    later_usage,
)
from crosswalk.types.values import (
    NO_CAUSE,
    NO_RAW_EVENTS,
    ContentFilterCategory,
    ContentFilterResult,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    RawEvents,
    Segment,
    SegmentType,
    TokenLogprob,
    as_utc,
    error_segment,
    maker,
    new_id,
    now,
)

# ---------------------------------------------------------------------------------- choice
# The choices of an answer while it is received: their text, segments, tool calls and corrections.


_TEXT: Final = SegmentType.TEXT  # an enum's members are slow to look up
_REASONING: Final = SegmentType.REASONING
_REFUSAL: Final = SegmentType.REFUSAL
_TOOL_CALL: Final = SegmentType.TOOL_CALL
_ASSISTANT: Final = Role.ASSISTANT
_MESSAGE_MAKER: Final = maker(ChatMessage, "role", "content", "tool_calls")
_SEGMENT_MAKER: Final = maker(Segment, "type", "content")
_CALL_MAKER: Final = maker(Segment, "type", "content", "metadata")
_PLAIN_CALL_MAKER: Final = maker(ToolCall, "id", "name", "arguments", "kind")


class CallDraft:
    """One tool call of one choice, as far as it has been received.

    Attributes:
        index: its position among the calls of its choice, in order of first appearance.
        id: the provider's id, or ``None`` until one comes.
        name: the tool's name, or ``None`` until one comes.
        arguments: the pieces of its arguments so far.
        kind: ``custom`` for free text, or ``None`` for a JSON object.
        wire_index: the provider's own index, or ``None`` if it sends none.
        other_id: the id of its last fragment, if that is not the id of the call.
    """

    __slots__ = ("arguments", "id", "index", "kind", "name", "other_id", "wire_index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []
        self.kind: CallKind | None = None
        self.wire_index: int | None = None
        self.other_id: str | None = None

    def text(self, *, partial: bool) -> str:
        """The arguments. A whole call without any has the empty object, which is its meaning, or no text."""
        return "".join(self.arguments) or ("" if partial or self.kind is not None else "{}")


Built: TypeAlias = tuple[ChatMessage, tuple[Segment, ...], str | None, tuple[TokenLogprob, ...] | None]
"""The finished parts of a choice: its message, its segments, its refusal and its log probabilities."""


class ChoiceDraft:
    """One of the answers to a request while its deltas come in. Parts are in order; texts are lists that are joined once.

    Attributes:
        parts: text of a kind as pieces, whole segments, and tool calls.
        open: the kind of text that the next piece continues, or ``None`` if it begins a part.
        text: the pieces of that part.
        calls: the tool calls, by their position.
        has_calls: whether a tool call is among the parts.
        logprobs: the tokens so far, or ``None`` before the first.
        finish: why it ended, or ``None`` until a delta reports it.
        raw_finish: the provider's own word for that, or ``None`` until it sends one.
    """

    __slots__ = (
        "_has_blank_content", "_inserted_calls", "_last", "_later_segments", "_pieces_by_part", "calls", "finish",
        "has_calls", "logprobs", "open", "parts", "raw_finish", "text",
    )  # fmt: skip

    def __init__(self) -> None:
        self.parts: list[tuple[SegmentType, list[str]] | Segment | CallDraft] = []
        self.open: SegmentType | None = None
        self.text: list[str] = []
        self.calls: dict[int, CallDraft] = {}
        self.has_calls = False
        self.logprobs: list[TokenLogprob] | None = None
        self.finish: FinishReason | None = None
        self.raw_finish: str | None = None
        self._inserted_calls: set[int] = set()  # the calls that are among the parts
        self._later_segments: dict[int, Segment] = {}  # what came later about the part of that number
        # The pieces of each segment that comes in pieces, by the number of the part: its first one is among the parts.
        self._pieces_by_part: dict[int, list[Segment]] = {}
        self._last: dict[tuple[SegmentType, Any], list[Segment]] = {}  # the latest of them, by type and mark
        self._has_blank_content = False  # whether a content came that was empty: "", which is not None

    def add(self, delta: ResponseDelta) -> None:
        """Add all fields of *delta* for this choice: reasoning before text before calls."""
        text = delta.content_delta
        if delta.reasoning_delta is not None:
            self.write(_REASONING, delta.reasoning_delta)
        if text is not None:
            if self.open is _TEXT:  # most of any stream
                self.text.append(text)
            else:
                self.write(_TEXT, text)
        if delta.refusal_delta is not None:
            self.write(_REFUSAL, delta.refusal_delta)
        if delta.tool_call_delta is not None:
            self.add_call(delta.tool_call_delta)
        if delta.segment is not None:
            self.insert(delta.segment)
        if delta.correction is not None:
            self.correct(delta.correction)
        if delta.logprobs is not None:
            self.weigh(delta.logprobs)
        if delta.finish_reason is not None:
            self.finish = delta.finish_reason
        if delta.raw_finish_reason is not None:
            self.raw_finish = delta.raw_finish_reason

    def weigh(self, tokens: Iterable[TokenLogprob]) -> None:
        """Take the log probabilities of more *tokens*."""
        if self.logprobs is None:
            self.logprobs = []
        self.logprobs.extend(tokens)

    def write(self, kind: SegmentType, text: str) -> None:
        """Take a piece of text of *kind*."""
        if self.open is not kind:
            if not text:  # some servers send an empty content with every piece of reasoning
                self._has_blank_content = self._has_blank_content or kind is _TEXT
                return
            self.open, self.text = kind, []
            self.parts.append((kind, self.text))
        self.text.append(text)

    def insert(self, part: Segment) -> None:
        """Add a whole segment, more fields of the part before, or a piece of a segment that comes in pieces."""
        if part.metadata and PIECE in part.metadata:
            piece_key = part.type, part.metadata[PIECE]
            pieces = self._last.get(piece_key)
            if pieces is not None and _is_of(pieces, part):
                pieces.append(part)
                return
            self._last[piece_key] = self._pieces_by_part[len(self.parts)] = [part]
            self.parts.append(part)
        elif self._completes(part):
            if part.metadata or part.annotations:
                self._later_segments[len(self.parts) - 1] = part
        else:
            self.parts.append(part)
        self.open = None

    def _completes(self, segment: Segment) -> bool:
        """Return whether *segment*, without content itself, ends the part of its type just before it.

        It may add to that part: a signature comes when the reasoning has been streamed. For a tool call, it must not name
        another call.
        """
        if segment.content or not self.parts or len(self.parts) - 1 in self._later_segments:
            return False
        if type(self.parts[-1]) is CallDraft:
            own_keys = segment.metadata.keys() & {"id", "name", "type"}
            return segment.type is _TOOL_CALL and bool(segment.metadata) and not own_keys
        return segment.type is self.open

    def add_call(self, fragment: ToolCallDelta) -> None:
        """Take a call, or a fragment of one."""
        index = fragment.index
        call = self.calls.get(index)
        if call is None:
            call = self.calls[index] = CallDraft(index)
        if index not in self._inserted_calls:
            self._inserted_calls.add(index)
            self.has_calls = True
            self.parts.append(call)
            self.open = None
        # An id or a name is set once and never joined on: some servers repeat them in every fragment.
        call.id = call.id or fragment.id
        call.name = call.name or fragment.name
        call.kind = call.kind or fragment.kind
        if fragment.arguments_delta:
            call.arguments.append(fragment.arguments_delta)

    def correct(self, correction: Correction) -> None:
        """Replace streamed characters, which may lie in several parts. Emptied parts are left out of the answer."""
        if correction.call is None:
            piece_lists = [
                part[1] for part in self.parts if type(part) is tuple and part[0] is correction.type
            ]
        else:
            piece_lists = [self.calls[correction.call].arguments] if correction.call in self.calls else []
        start, end, new_text = correction.start, correction.end, correction.text
        for pieces in piece_lists:
            text = "".join(pieces)
            if start < len(text) and end > 0:
                pieces[:] = [text[: max(start, 0)] + new_text + text[max(end, 0) :]]
                new_text = ""
            start, end = start - len(text), end - len(text)

    def joined(self, kind: SegmentType) -> str:
        """Return all text of *kind*, or ``""`` if there is none."""
        pieces: list[str] = []
        for part in self.parts:
            if type(part) is tuple and part[0] is kind:
                pieces += part[1]
            elif type(part) is Segment and part.type is kind:
                pieces.append(part.content)
        return "".join(pieces)

    def build(self, path: str, number: int, provenance: dict[str, Provenance], *, partial: bool) -> Built:
        """Return the finished parts. Values that were made up are noted in *provenance*, under *path*.

        A call without a name raises :class:`ResponseValidationError`, except in a partial answer, where it stays a
        segment. A call without an id gets one, the same for the same position in the answer.
        """
        logprobs = None if self.logprobs is None else tuple(self.logprobs)
        if (
            len(self.parts) == 1
            and type(part := self.parts[0]) is tuple
            and part[0] is _TEXT
            and not self._later_segments
        ):
            text = "".join(part[1])  # most answers are one text, whose pieces were checked
            return _MESSAGE_MAKER(_ASSISTANT, text, None), (_SEGMENT_MAKER(_TEXT, text),), None, logprobs
        calls: list[ToolCall] = []
        call_segments: dict[CallDraft, Segment] = {}
        taken_ids = set(map(_ID_OF, self.calls.values()))
        for index in sorted(self._inserted_calls):
            call = self.calls[index]
            id, name = call.id or _free_id(number, index, taken_ids), call.name
            arguments = "".join(call.arguments) or call.text(partial=partial)
            metadata: dict[str, Any] = {"id": id}
            if name:
                metadata["name"] = name
                if not call.id:
                    provenance[f"{path}message.tool_calls[{len(calls)}].id"] = Provenance.SYNTHETIC
                if not call.arguments and not partial and call.kind is None:
                    provenance[f"{path}message.tool_calls[{len(calls)}].arguments"] = Provenance.DERIVED
                is_plain = type(id) is type(name) is str and id.isascii() and name.isascii()
                calls.append((_PLAIN_CALL_MAKER if is_plain else ToolCall)(id, name, arguments, call.kind))
            elif not partial:
                raise ResponseValidationError(f"tool call {index} has no name")
            call_segments[call] = _CALL_MAKER(_TOOL_CALL, arguments, adopted(metadata))
        segments: list[Segment] = []
        texts: list[str] = []
        refusals: list[str] = []
        for position, part in enumerate(self.parts):
            later_segment = self._later_segments.get(position)
            if isinstance(part, tuple):
                if not any(part[1]) and later_segment is None:
                    continue  # a correction may empty a text
                segment = _SEGMENT_MAKER(part[0], "".join(part[1]))  # of checked pieces
            elif position in self._pieces_by_part:
                segment = whole_segment(self._pieces_by_part[position])
            else:
                segment = part if isinstance(part, Segment) else call_segments[part]
            segments.append(segment if later_segment is None else _with_more(segment, later_segment))
            if segment.type is _TEXT:
                texts.append(segment.content)
            elif segment.type is _REFUSAL:
                refusals.append(segment.content)
        content = "".join(texts) if texts or self._has_blank_content else None
        return (
            _MESSAGE_MAKER(_ASSISTANT, content, tuple(calls) or None),
            tuple(segments),
            "".join(refusals) if refusals else None,
            logprobs,
        )


def _with_more(segment: Segment, later_segment: Segment) -> Segment:
    metadata = {**segment.metadata.thawed(), **later_segment.metadata.thawed()}
    return Segment(
        segment.type, segment.content, metadata, (*segment.annotations, *later_segment.annotations)
    )


PIECE: Final = "is_piece"
"""The key in the metadata of a segment that is a piece of one, such as a sound. The pieces of the same type with the same
value make one segment of the answer."""


def _is_of(pieces: list[Segment], piece: Segment) -> bool:
    """Whether *piece* belongs to *pieces*: an id of another one begins the next."""
    id = piece.metadata.get("id")
    return id is None or all(
        id == known_id
        for first_piece in pieces[:1]
        if (known_id := first_piece.metadata.get("id")) is not None
    )


def whole_segment(pieces: list[Segment]) -> Segment:
    """The segment that came in *pieces*. Those of a sound are each base64 of their own, or a part of the transcript."""
    metadata: dict[str, Any] = {}
    for piece in pieces:
        metadata = {**piece.metadata, **metadata}
    transcripts = [str(piece.metadata["transcript"]) for piece in pieces if "transcript" in piece.metadata]
    if transcripts:
        metadata["transcript"] = "".join(transcripts)
    del metadata[PIECE]
    kind, contents = pieces[0].type, [piece.content for piece in pieces]
    content = _joined_base64(contents) if kind is SegmentType.MEDIA else "".join(contents)
    return Segment(kind, content, metadata)


def _joined_base64(pieces: list[str]) -> str:
    """The base64 of the bytes of all *pieces*. Pieces that are no base64 are joined as they are."""
    if not any("=" in piece for piece in pieces[:-1]):
        return "".join(pieces)
    import base64  # seldom needed

    try:
        return base64.b64encode(b"".join(map(base64.b64decode, pieces))).decode()
    except ValueError:
        return "".join(pieces)


_ID_OF: Final = attrgetter("id")


def _free_id(choice: int, index: int, taken_ids: set[str | None]) -> str:
    free_id = f"call_{index}" if choice == 0 else f"call_{choice}_{index}"
    while free_id in taken_ids:
        free_id += "_"
    taken_ids.add(free_id)
    return free_id


# ---------------------------------------------------------------------------------- answer
# The state of one answer while it is received: provider, choices, usage, extensions. Each fact is stored once.
#
# Deltas are added to it, and it returns the response that they make.
# :class:`~crosswalk.types.stream.DeltaAccumulator`
# adds deltas from several threads. The state of a mapping (``crosswalk.plugin.state``) is an answer, too.


_PASSTHROUGH_OPTIONS: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
REQUIRED_COUNTS: Final = ("prompt_tokens", "completion_tokens")
"""The counts that every report of usage should contain."""
_WHOLES_BY_COUNT: Final = {
    "cached_tokens": "prompt_tokens",
    "cache_write_tokens": "prompt_tokens",
    "reasoning_tokens": "completion_tokens",
}
"""The count that each count is a part of. A server with a part above its whole counts differently than it promises."""
_WHOLES_BY_DETAIL: Final = {
    **{f"{modality}_input_tokens": "prompt_tokens" for modality in ("text", "audio", "image", "video")},
    **{f"{modality}_output_tokens": "completion_tokens" for modality in ("text", "audio", "image", "video")},
    **{f"{modality}_cache_read_tokens": "cached_tokens" for modality in ("text", "audio", "image", "video")},
    "cache_write_5m_tokens": "cache_write_tokens",
    "cache_write_1h_tokens": "cache_write_tokens",
}
"""The same for the details."""
_STRING_TYPE: Final = frozenset({str})
_TEXT_TYPES: Final = frozenset({str, NoneType})
_ZERO: Final = timedelta(0)
_ABSENT: Final = Provenance.ABSENT  # an enum's members are slow to look up
_SYNTHETIC: Final = Provenance.SYNTHETIC
_ERROR: Final = FinishReason.ERROR
_COMPLETE_REASONS: Final = (FinishReason.STOP, FinishReason.TOOL_CALLS)
_METADATA_FIELDS: Final = (
    "provider_id", "model_id", "request_duration", "time_to_first_token", "extensions", "provenance",
    "completion_tokens",
)  # fmt: skip
_METADATA_MAKER: Final = maker(ResponseMetadata, *_METADATA_FIELDS)
_RESPONSE_FIELDS: Final = (
    "id", "message", "finish_reason", "usage", "metadata", "created", "model", "refusal", "content_filter_results",
    "raw_finish_reason", "segments", "logprobs", "alternatives", "raw_events",
)  # fmt: skip
_RESPONSE_MAKER: Final = maker(ChatResponse, *_RESPONSE_FIELDS)


class AnswerDraft:
    """One answer while it comes in.

    Args:
        provider: the provider id.

    Attributes:
        provider: the provider id.
        id: the provider's id of the response, or ``None`` until it sends one.
        model: the model's name, or ``None`` until the provider sends one.
        created: the provider's time of creation, or ``None`` until it sends one.
        request_duration: from request to end, measured or reported, or ``None`` if neither.
        time_to_first_token: from request to first token, or ``None`` if it was not measured.
        provenance: canonical path to why its value is not the provider's own word.
        verdicts: the worst verdict of the provider's moderation in each category.
        choices: the answers that have begun, by number.
        usage: the counts so far, or ``None`` before the first report.
        is_checked: whether each value is checked before it is put in, so that the response need not check all of them again.
        delta_count: the number of deltas that were added, which is the index of the next one.
        raw_events: the provider's bytes, event by event.
        id_factory: makes an id if the provider sends none.
        clock: returns the time of creation if the provider sends none.
    """

    id: str | None = None
    model: str | None = None
    created: datetime | None = None
    request_duration: timedelta | None = None
    time_to_first_token: timedelta | None = None
    usage: UsageInfo | None = None
    delta_count = 0
    is_checked = False
    _is_shared = False  # whether a delta or a response holds the extensions themselves

    def __init__(self, provider: str = "unknown") -> None:
        self.provider = provider
        self.provenance: dict[str, Provenance] = {}
        self.verdicts: dict[ContentFilterCategory, ContentFilterResult] = {}
        self.choices: dict[int, ChoiceDraft] = {}
        self.raw_events: list[bytes] = []
        self.id_factory: Callable[[], str] = new_id
        self.clock: Callable[[], datetime] = now
        self._extensions: dict[str, Any] = {}
        self._arrays = Arrays()

    def choice(self, number: int) -> ChoiceDraft:
        """Return choice *number*, and begin it if it has not begun yet."""
        draft = self.choices.get(number)
        if draft is None:
            draft = self.choices[number] = ChoiceDraft()
        return draft

    @property
    def others(self) -> list[int]:
        """Return the numbers of the choices after the first."""
        return sorted(self.choices.keys() - {0})

    def add(self, delta: ResponseDelta) -> None:
        """Add all fields of *delta*, the next one in order."""
        self.delta_count += 1
        self.choice(delta.choice).add(delta)
        if delta.usage is not None:
            self.usage = later_usage(self.usage, delta.usage)
        if delta.extensions is not EMPTY_OBJECT:
            self.extend(delta.extensions._data, PIECES)

    def extend(self, fields: dict[str, Any], rules: MergeRules) -> dict[str, Any]:
        """Add *fields* to the extensions, and return the part of it that is new. See :func:`crosswalk.types.json.merge`."""
        if not self._extensions:
            # Stored unchanged: a body is one event, and may carry a lot.
            self._extensions, self._is_shared = fields, True
            return fields
        extensions = self.extensions if self._is_shared else self._extensions
        return merge(extensions, fields, self._arrays, rules)

    def holds(self, fields: dict[str, Any]) -> bool:
        """Whether *fields* are texts that the extensions hold already: a quick look at what many events repeat."""
        return (
            _TEXT_TYPES.issuperset(map(type, fields.values())) and fields.items() <= self._extensions.items()
        )

    @property
    def has_mixed_arrays(self) -> bool:
        """Whether an array of the extensions has items with an ``index`` and others."""
        return self._arrays.is_mixed

    def placed(self, fields: dict[str, Any], rules: MergeRules) -> Iterator[Placed]:
        """Yield each object and array in *fields*, with its path once :meth:`extend` has added it."""
        return placed(self.extensions, fields, self._arrays, rules)

    @property
    def extensions(self) -> dict[str, Any]:
        """The merged fields without a typed counterpart so far. The owner may add to them."""
        if self._is_shared:
            self._extensions, self._is_shared = copy_json(self._extensions), False
        return self._extensions

    @property
    def has_json_extensions(self) -> bool:
        """Return whether the extensions are JSON at any depth. A provider sends nothing else. A hook may."""
        if not self._extensions:
            return True
        try:
            encoded = dump_json(self._extensions, option=_PASSTHROUGH_OPTIONS)
        except TypeError as error:
            return "ecursion" in str(error) and is_finite(self._extensions)
        # orjson writes null for NaN and infinity.
        return encoded.find(b"null") < 0 or not _holds_non_finite(self._extensions)

    def response(
        self,
        finish: FinishReason,
        error_segments: tuple[Segment, ...] = (),
        *,
        cause: str | None = None,
        choices: Mapping[int, ChoiceDraft] | None = None,
        is_last: bool = False,
    ) -> ChatResponse:
        """Return the content so far as a response that ended with *finish*. The *error_segments* come last.

        Of their contents, *cause* is one that is known to be clean. *choices* stand for those of the answer, or ``None`` for
        its own. Nothing is merged after the one that *is_last*.

        Raises:
            ResponseValidationError: a choice has not ended, or a tool call has no name. Never raised for ``error``.
        """
        # Sorted, so that it is the same however often each was noted and taken back.
        provenance = dict(sorted(self.provenance.items())) if self.provenance else {}
        has_failed = finish is _ERROR
        choices = self.choices if choices is None else choices
        first_choice = choices.get(0) or ChoiceDraft()
        is_partial = finish not in _COMPLETE_REASONS
        message, segments, refusal, logprobs = first_choice.build("", 0, provenance, partial=is_partial)
        alternatives: tuple[Alternative, ...] = ()
        if len(choices) > 1:
            alternatives = tuple(
                [
                    self._alternative(position, number, provenance, failed=has_failed)
                    for position, number in enumerate(self.others)
                ]
            )
        if error_segments:
            segments = (*segments, *error_segments)
        if has_failed:
            refusal = _error_text(segments, cause) or refusal or NO_CAUSE
        duration = self.request_duration
        self._note_what_is_missing(provenance, duration)
        usage = self.usage or UsageInfo.EMPTY
        model = self.model or "unknown"
        id = self.id or self.id_factory()
        self._is_shared |= is_last
        # A plugin may set any of these itself.
        is_checked = (
            self.is_checked
            and type(id) is type(model) is str
            and _STRING_TYPE.issuperset(map(type, provenance))
        )
        is_checked = is_checked and type(usage) is UsageInfo
        metadata = (_METADATA_MAKER if is_checked else _checked_metadata)(
            self.provider,
            model,
            duration or _ZERO,
            self.time_to_first_token,
            adopted(self._extensions if self._is_shared else copy_json(self._extensions)),
            MappingProxyType(provenance),
            counted_tokens(usage, provenance),
        )
        return (_RESPONSE_MAKER if is_checked else _checked_response)(
            id,
            message,
            finish,
            usage,
            metadata,
            self.created or (now() if self.clock is now else as_utc(self.clock())),
            model,
            refusal,
            tuple(self.verdicts.values()) or None,
            first_choice.raw_finish,
            segments,
            logprobs,
            with_unknown_parts(alternatives, provenance) if alternatives else (),
            RawEvents(self.raw_events) if self.raw_events else NO_RAW_EVENTS,
        )

    def head(self, finish_word: str | None) -> ChatResponse:
        """Return a response without content, which ended with *finish_word* and has all else that is known so far."""
        silent_choice = ChoiceDraft()
        silent_choice.raw_finish = finish_word
        return self.response(FinishReason.STOP, choices={0: silent_choice})

    def partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Return everything so far as an error response, for an answer that will not become complete."""
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        return self.response(FinishReason.ERROR, (error_segment(info),))

    def _alternative(
        self, position: int, number: int, provenance: dict[str, Provenance], *, failed: bool
    ) -> Alternative:
        choice = self.choices[number]
        if choice.finish is None and not failed:
            raise ResponseValidationError(
                f"Cannot build incomplete response: choice {number} has not ended",
                code="ACODE-RSP-008",
            )
        finish = choice.finish or FinishReason.ERROR
        path = f"alternatives[{position}]."
        is_partial = failed or finish not in _COMPLETE_REASONS
        message, segments, refusal, logprobs = choice.build(path, number, provenance, partial=is_partial)
        return Alternative(
            index=number,
            message=message,
            finish_reason=finish,
            raw_finish_reason=choice.raw_finish,
            refusal=refusal,
            segments=segments,
            logprobs=logprobs,
        )

    def _note_what_is_missing(self, provenance: dict[str, Provenance], duration: timedelta | None) -> None:
        if self.usage is None:
            provenance.setdefault("usage", _ABSENT)
        else:
            if _ABSENT in (provenance.get("usage.prompt_tokens"), provenance.get("usage.completion_tokens")):
                provenance["usage.total_tokens"] = _ABSENT  # one count of two is not their total
            self._mark_parts(self.usage, _WHOLES_BY_COUNT, "usage.", provenance)
            if self.usage.details is not UsageDetails.EMPTY:
                self._mark_parts(self.usage.details, _WHOLES_BY_DETAIL, "usage.details.", provenance)
        if self.id is None:
            provenance["id"] = _SYNTHETIC
        if self.created is None:
            provenance["created"] = _SYNTHETIC
        if self.model is None:
            provenance["model"] = _ABSENT
        if duration is None:
            provenance["metadata.request_duration"] = _ABSENT

    def _mark_parts(
        self, counts: object, wholes: Mapping[str, str], path: str, provenance: dict[str, Provenance]
    ) -> None:
        """Mark each of the *counts* that is above the whole that it is a part of."""
        for part_name, whole_name in wholes.items():
            count = getattr(counts, part_name)
            if count is None:
                continue
            whole = getattr(self.usage, whole_name)
            if whole is not None and count > whole and provenance.get(f"usage.{whole_name}") is not _ABSENT:
                provenance.setdefault(path + part_name, Provenance.MISTYPED)


def _checked_metadata(*values: Any) -> ResponseMetadata:
    return ResponseMetadata(**dict(zip(_METADATA_FIELDS, values, strict=True)))


def _checked_response(*values: Any) -> ChatResponse:
    return ChatResponse(**dict(zip(_RESPONSE_FIELDS, values, strict=True)))


def _holds_non_finite(value: Any) -> bool:
    """Whether a float in *value*, made of what orjson writes as it is, is NaN or infinite."""
    containers = [value]
    for container in containers:  # which grows
        for item in container.values() if type(container) is dict else container:
            kind = type(item)
            if kind is float:
                if not isfinite(item):
                    return True
            elif (kind is dict or kind is list or kind is tuple) and item:
                containers.append(item)
    return False


def _error_text(segments: Iterable[Segment], clean_text: str | None) -> str | None:
    text = next((segment.content for segment in segments if segment.type is SegmentType.ERROR), None)
    return text if text is None or text == clean_text else clean_message(text)


class Texts:
    """Yields the texts of an answer, and separates consecutive texts of the same type if they are of different blocks."""

    def __init__(self) -> None:
        self._said: tuple[SegmentType, object] | None = None  # the last text's type and block

    def say(
        self,
        kind: SegmentType,
        block: object,
        text: str | None,
        logprobs: tuple[TokenLogprob, ...] | None = None,
    ) -> Iterable[ResponseDelta]:
        """Return the deltas of *text*, more of *block*: a text, reasoning or a refusal. An empty text counts too."""
        if not text and not logprobs:
            is_empty = text is not None and kind is _TEXT
            return (ResponseDelta(content_delta=text),) if is_empty else ()
        last_text, self._said = self._said, (kind, block)
        # Most of a stream goes on with the block before.
        separators = () if last_text is None or last_text[1] is block else _apart(kind, last_text[0])
        if kind is _TEXT:
            delta = ResponseDelta(content_delta=text, logprobs=logprobs) if logprobs else said(text)
            return (*separators, delta)
        if kind is _REASONING:
            return (*separators, said(None, text))
        return (*separators, ResponseDelta(refusal_delta=text))

    def keep(self, block: object, name: str, value: str | None, **facts: Any) -> Iterable[ResponseDelta]:
        """The deltas of what is to be sent back byte for byte with the reasoning of *block*, or in its place.

        The other *facts* about it go with it.
        """
        if not value:
            return ()
        last_text, segment = self._said, Segment(_REASONING, "", {name: value, **facts})
        separators = () if last_text is None or last_text[1] is block else _apart(segment.type, last_text[0])
        return (*separators, self.insert(segment))

    def insert(self, segment: Segment) -> ResponseDelta:
        """The delta of a whole *segment*, which ends the text before it."""
        self.end()
        return ResponseDelta(segment=segment)

    def end(self) -> None:
        """Say that something else comes, such as a call: the text before it is over."""
        self._said = None


def _apart(kind: SegmentType, last_kind: SegmentType) -> tuple[ResponseDelta, ...]:
    """Return the deltas that end the text of another block, of the kind *last_kind*, before one of *kind*."""
    return (ResponseDelta(segment=Segment(kind)),) if last_kind is kind else ()
