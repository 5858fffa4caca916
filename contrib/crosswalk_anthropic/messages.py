"""The Messages dialect (``/v1/messages``), which other servers answer in too, and the Text Completions before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar, Final

from crosswalk.plugins import (
    Block,
    Blocks,
    CitationRef,
    CountPaths,
    ErrorInfo,
    FinishReason,
    MappingState,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    TrailingContentError,
    UnknownEventError,
    UsageInfo,
    VendorErrors,
    WireTypeError,
    accept_count,
    accept_object,
    accept_objects,
    counted,
    error_info,
    hookimpl,
    look_at,
    look_at_cost,
    messages as wire,
    require_object,
    take_count,
    take_end,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_same_at,
    take_string,
    take_whole,
    unknown_event,
    wrong_type,
)

# ---------------------------------------------------------------------------------- blocks
# Reads content blocks and their pieces, whole and streamed (sections 2.1 and 3).
#
# A whole block is a start and a stop without pieces, so that both forms take one path. The extra fields of a call
# follow it in an empty segment of its type.


_SOURCE_KEYS = ("url", "source", "file_id", "document_title", "title")


class ContentBlocks(Blocks):
    """The content blocks of one message, in order of appearance."""

    def __init__(self) -> None:
        super().__init__()
        self._current_block: Block | None = None  # that the last event was about

    def whole(self, block: dict[str, Any], index: int, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of a block that came at once."""
        opened_block = self.open(index, _kind_of(block))
        opened_block.is_stopped = True
        if opened_block.kind == "text" and "citations" not in block:  # it holds nothing until its end
            return self.say(SegmentType.TEXT, opened_block, take_string(block, "text") or None)
        return self._at_once(opened_block, block, state)

    def _at_once(
        self, opened_block: Block, block: dict[str, Any], state: MappingState
    ) -> Iterator[ResponseDelta]:
        yield from self._start(opened_block, block, state)
        yield from self.complete(opened_block)

    def start(self, event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block's start, which for many types is all of it."""
        block = require_object(event.get("content_block"), "content_block")
        number, index = len(self.known), self.take_index(event)
        if index not in (None, number):
            event["index"] = index  # what the order does not tell
        self._current_block = self.open(number if index is None else index, _kind_of(block))
        yield from self._start(self._current_block, block, state)

    def delta(self, event: dict[str, Any], state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of a piece of a block."""
        delta = require_object(event.get("delta"), "delta")
        index = self.take_index(event)
        block = self._current_block = self.last if index is None else self.known.get(index)
        if index is not None and (block is None or block is not self.last):
            event["index"] = index
        if block is not None and not wire.is_known_block(block.kind):
            return ()
        kind = take_string(delta, "type") or ""
        if kind not in wire.PIECES:
            raise UnknownEventError(f"a piece of a block of an unknown type ({kind[:60] or 'no type'})")
        if block is None:
            number = len(self.known) if index is None else index
            block = self._current_block = self.open(number, wire.PIECES[kind].block)
        match kind:
            case "text_delta":
                return self.say(SegmentType.TEXT, block, take_string(delta, "text") or None)
            case "thinking_delta":
                return self.say(SegmentType.REASONING, block, take_string(delta, "thinking"))
            case "signature_delta":
                return self.keep(block, "signature", take_string(delta, "signature"))
            case "citations_delta":
                return self._follow(accept_object(delta, "citation"), block)
            case _:  # input_json_delta
                if not block.held and block.kind != "tool_use":
                    raise WireTypeError(
                        "delta", expected=f"a piece of a block of type {block.kind!r}", got=delta
                    )
                return self.argue(block, delta, "partial_json", state)

    def _follow(self, citation: dict[str, Any] | None, block: Block) -> Iterator[ResponseDelta]:
        """The deltas of a *citation* of *block*, which comes after its text."""
        if citation:
            if self._said == (SegmentType.TEXT, block):  # a whole block has them before its text
                yield self.insert(Segment(SegmentType.TEXT, "", {"citations": "follow"}))
            yield self._cite(citation)

    def place(self, event: dict[str, Any], name: str) -> None:
        """Move what *event* has left under *name* to where the message has it: into ``content``, with the block's index."""
        inner, block = event.get(name), self._current_block
        if not inner or block is None or "content" in event:
            return
        del event[name]
        if (
            name == "delta"
            and not wire.is_known_block(block.kind)
            and inner.get("type") == f"{block.kind}_delta"
        ):
            del inner["type"]  # it replaces a field of its block, as ``compaction_delta`` does
        elif name == "delta":
            inner = {name: inner}
        if "index" in inner:
            inner = {name: inner}
        take_same(event, "index", block.index)
        inner["index"] = block.index  # the very object: what was noted of it is found by it
        event["content"] = [inner]

    def take_index(self, event: dict[str, Any]) -> int | None:
        """Take the index of *event*'s block, or ``None`` for the last one.

        If no other block is open, an index of a wrong type stays and is noted.
        """
        index = accept_count(event, "index")
        if index is None and "index" in event:
            others = (block for block in self.known.values() if block is not self.last)
            if not all(block.is_stopped for block in others):
                take_count(event, "index")
        return index

    def _start(
        self, opened_block: Block, block: dict[str, Any], state: MappingState
    ) -> Iterator[ResponseDelta]:
        match opened_block.kind:
            case "text":
                for citation in accept_objects(block, "citations") if "citations" in block else ():
                    yield self._cite(citation)
                yield from self.say(SegmentType.TEXT, opened_block, take_string(block, "text") or None)
            case "thinking":
                yield from self.say(SegmentType.REASONING, opened_block, take_string(block, "thinking"))
                yield from self.keep(opened_block, "signature", take_string(block, "signature"))
            case "redacted_thinking":
                data = take_string(block, "data") or ""
                facts = {"is_foreign": True} if data.startswith(wire.ENCRYPTED) else {}
                yield from self.keep(opened_block, "encrypted", data.removeprefix(wire.ENCRYPTED), **facts)
            case "tool_use":
                yield self.call(opened_block, block, state)
                # The next request repeats its extra fields. Its id may be that of another call.
                id_field = {"id": block.pop("id")} if "id" in block else {}
                metadata = {name: value for name, value in take_whole(block).items() if value is not None}
                block.update(id_field)
                if metadata:
                    yield self.insert(Segment(SegmentType.TOOL_CALL, "", metadata))
            case kind if not wire.is_known_block(kind):
                block["type"] = kind
                if kind not in wire.STATE_BLOCKS:
                    state.note_unknown_part()
            case kind if wire.is_server_call(kind):
                tool_input = take_object(block, "input")
                self.hold(opened_block, kind, {**_item(kind, block), "input": tool_input})
            case kind:
                wire_block = wire.BLOCKS.get(kind)
                type = SegmentType.TOOL_CALL if wire_block is None else wire_block.segment
                yield self.insert(Segment(type, "", _item(kind, block)))

    def _cite(self, citation: dict[str, Any]) -> ResponseDelta:
        for name in ("cited_text", *_SOURCE_KEYS):
            look_at(citation, name, str)
        metadata = take_whole(citation)
        source = next((metadata[name] for name in _SOURCE_KEYS if metadata.get(name)), None)
        text = metadata.pop("cited_text", None) or ""
        return self.insert(Segment(SegmentType.CITATION, text, metadata, (CitationRef(source=source),)))


def _kind_of(block: dict[str, Any]) -> str:
    kind = take_string(block, "type")
    if kind is None:
        raise wrong_type(block, "type", expected="string")
    return kind


def _item(kind: str, block: dict[str, Any]) -> dict[str, Any]:
    """Take all of *block*, an item of a server's tool or a file. Its fields about a call are text."""
    metadata: dict[str, Any] = {"type": kind}
    metadata |= {name: take_string(block, name) for name in ("id", "name", "tool_use_id") if name in block}
    return metadata | take_whole(block)


# -------------------------------------------------------------------------------- messages
# The Messages dialect (``/v1/messages``), which other servers answer in too.
#
# Facts: provider document "Anthropic Messages"; the deviations of other servers, in "vLLM", section 9, "Ollama",
# section 9.4, and "llama.cpp", section 8, need no separate code.


_ERRORS: Final = VendorErrors("crosswalk_anthropic", "anthropic")
_PATHS_BY_COUNT: Final = {**wire.COUNTS, **wire.DETAILS}
_COUNT_PATHS: Final = CountPaths(_PATHS_BY_COUNT)


def anthropic_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error ``{"type": "error", "error": {"type", "message"}, "request_id"}`` says.

    *status* is ``None`` for an event inside a stream.
    """
    return _ERRORS.refined(error_info(status, body))


class _Message:
    """The progress of a message.

    Attributes:
        blocks: its content blocks.
        counts: its tokens, as last reported.
        first: those of its start, by the provider's names for them.
        starts: how often its start has arrived.
    """

    def __init__(self) -> None:
        self.blocks = ContentBlocks()
        self.counts: dict[str, int] = {}
        self.first: dict[str, int] = {}
        self.starts = 0


class AnthropicDialect:
    """The hooks for ``/v1/messages``, whole and streamed.

    A provider with a server that answers in it too puts an instance, or one of a subclass, into its ``DialectFamily``.

    Attributes:
        title: the provider's name as people write it.
        documentation: the URL of the provider's documentation.
        finish_reasons: the provider's stop reasons.
        message_paths: see ``ProviderInfo``.
        text_paths: see ``ProviderInfo``.
    """

    title: ClassVar[str] = "Anthropic Messages"
    documentation: ClassVar[str | None] = None
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = wire.FINISH_REASONS
    message_paths: ClassVar[tuple[str, ...]] = ("content[]", "*")
    text_paths: ClassVar[tuple[str, ...]] = ("delta.text", "delta.thinking", "delta.partial_json")
    map_error = staticmethod(hookimpl(anthropic_error))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title=self.title,
            endpoints=("/v1/messages",),
            documentation=self.documentation,
            message_paths=self.message_paths,
            text_paths=self.text_paths,
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: several servers speak this dialect."""
        match event:
            case (
                {"type": "message", "role": "assistant", "content": _, "usage": _}
                | {"type": "error", "error": dict()}
                | {"type": "message_start", "message": dict()}
                | {"type": "content_block_start", "content_block": dict()}
                | {"type": "content_block_delta" | "message_delta", "delta": dict()}
                | {"type": "content_block_stop" | "message_stop" | "ping"}
            ):
                return Recognition.POSSIBLE
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. The type of the event stays for the hooks after it."""
        event = require_object(event)
        kind, progress = event.get("type"), state.own(_Message)
        # llama.cpp's error has no ``error`` inside. Only the event's name identifies it.
        if kind == "error" or state.event_name == "error" or event.get("error"):
            return chain(progress.blocks.flush(), (take_error(event, anthropic_error(None, event)),))
        if kind == "content_block_delta":
            return progress.blocks.delta(event, state)
        if kind == "message":
            return self._message(event, progress, state, whole=True)
        return self._around(kind, event, progress, state)

    def _around(
        self, kind: Any, event: dict[str, Any], progress: _Message, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """The deltas of an event of a stream that is no piece of a block."""
        blocks = progress.blocks
        match kind:
            case "content_block_start":
                yield from blocks.start(event, state)
            case "content_block_stop":
                yield from blocks.stop(event)
            case "message_start":
                message = require_object(event.get("message"), "message")
                yield from self._message(message, progress, state, whole=False)
            case "message_delta":
                yield from blocks.flush()
                yield from self._ending(require_object(event.get("delta"), "delta"), state)
            case "message_stop":
                yield from blocks.flush()
                yield from take_end(event, "stop_reason", state, default="")
            case "ping":
                del event["type"]  # one may come before the dialect is known
            case _:
                unknown_error = unknown_event(event)
                take_string(event, "type")
                raise unknown_error

    def _message(
        self, message: dict[str, Any], progress: _Message, state: MappingState, *, whole: bool
    ) -> Iterator[ResponseDelta]:
        """The message of a body or of a stream's start, which may have content already (section 3)."""
        progress.starts += 1
        content, is_same = message.get("content"), message.get("id") == state.id is not None
        if progress.starts > 1 and (whole or content or not is_same or state.has_ended(0)):
            raise TrailingContentError("a second message has begun")
        state.take_identity(message)
        take_same(message, "type", "message")
        take_same(message, "role", "assistant")
        for number, block in enumerate(content if type(content) is list else ()):
            if type(block) is not dict:
                break
            yield from progress.blocks.whole(block, number, state)
        take_objects(
            message, "content"
        )  # content that is not a list of objects is refused, after the text before it
        yield from self._ending(message, state)
        if whole and 0 not in state.ends:
            yield from take_end({}, "stop_reason", state, default="")

    def _ending(self, part: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """Why the model stopped, in a message or in a piece of it: after that, only ``message_stop`` comes."""
        details = accept_object(part, "stop_details") if "stop_details" in part else None
        if details is not None and look_at(details, "type", str) == "refusal":
            yield ResponseDelta(segment=_refusal(details))
        yield from take_end(part, "stop_reason", state)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``: a message that ends without a reason was cut (vLLM, section 9)."""
        if reason in wire.PAUSES:
            state.note("finish_reason", Provenance.DERIVED)
        return FinishReason.ERROR if reason == "" else self.finish_reasons.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``: the counts come in parts, and what a later report leaves out stays (section 5)."""
        is_start = event.get("type") == "message_start"
        holder = event["message"] if is_start else event
        usage = accept_object(holder, "usage") if "usage" in holder else None
        if not usage and wire.METRICS not in event:
            return None
        usage, progress = usage or {}, state.own(_Message)
        if progress.starts > 1 and is_start:
            for path, first_count in progress.first.items():
                take_same_at(usage, path, first_count)  # a repeated start has no new counts
            return None
        counts = progress.counts
        counts.update(_COUNT_PATHS.accept(usage))
        if wire.METRICS in event:
            _add_metrics(accept_object(event, wire.METRICS) or {}, counts)
        if is_start:
            progress.first = {_PATHS_BY_COUNT[name]: count for name, count in counts.items()}
        if "prompt_tokens" in counts:
            # Without the tokens that the cache had or got: the three make up the prompt.
            cached_tokens = counts.get("cached_tokens", 0) + counts.get("cache_write_tokens", 0)
            counts = {**counts, "prompt_tokens": counts["prompt_tokens"] + cached_tokens}
        return counted(counts, state, look_at_cost(usage))

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``. The residue of a stream's events has the paths of a whole message.

        That is the top for ``message_start.message`` and ``message_delta.delta``, and ``content`` under its index
        for a content block.
        """
        remaining: dict[str, Any] = event
        match remaining.pop("type", None):
            case "content_block_delta":
                if "delta" in remaining:
                    state.own(_Message).blocks.place(remaining, "delta")
            case "content_block_start":
                state.own(_Message).blocks.place(remaining, "content_block")
            case "message_start" if "message" in remaining:
                message = remaining["message"]
                if "content" in message:
                    for number, block in enumerate(message["content"]):
                        if block:
                            block.setdefault("index", number)
                    message["content"] = [block for block in message["content"] if block]
                _lift(remaining, "message")
            case "message_delta" if "delta" in remaining:
                _lift(remaining, "delta")
        return remaining


def _add_metrics(metrics: dict[str, Any], known: dict[str, int]) -> None:
    """Take from Bedrock's *metrics* the counts that are not *known*, and those that are equal."""
    for name, key in wire.METRICS_COUNTS.items():
        if not take_same(metrics, key, known.get(name)) and name not in known:
            count = accept_count(metrics, key)
            if count is not None:
                known[name] = count


def _lift(event: dict[str, Any], name: str) -> None:
    """Put what *event* has under *name* at the top, unless it would take another's place."""
    inner = event.pop(name)
    if event.keys() & inner.keys():
        inner = {name: inner}
    event.update(inner)


def _refusal(details: dict[str, Any]) -> Segment:
    """Why a classifier or the model declined: the explanation, where there is one, and the category (section 2)."""
    for name in ("explanation", "category"):
        look_at(details, name, str)
    metadata = take_whole(details)
    explanation, category = metadata.pop("explanation", None), metadata.get("category")
    kind = SegmentType.SAFETY if explanation is None else SegmentType.REFUSAL
    verdicts = () if category is None else (SafetyAnnotation(category, blocked=True),)
    return Segment(kind, explanation or "", metadata, verdicts)


# Other servers make ids of "msg_" or "req_" and hexadecimal digits.
_ID_PATTERN = re.compile(r"(msg_(bdrk_|vrtx_)?|req_)01(?=[0-9a-f]*[g-zA-Z])[0-9A-Za-z]{20,}")
_USAGE_MARKS = frozenset({"cache_creation", "inference_geo", "service_tier"})


class HostedMessages(AnthropicDialect):
    """The Messages dialect as Anthropic's own models answer in it."""

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: certain by the form of an id and by counts of no other server."""
        recognition = super().recognizes(event)
        if recognition is Recognition.NO:
            return recognition
        message = event.get("message") if event["type"] == "message_start" else event
        usage = message.get("usage")
        has_own_counts = isinstance(usage, dict) and not _USAGE_MARKS.isdisjoint(usage)
        id = event.get("request_id") if event["type"] == "error" else message.get("id")
        return Recognition.CERTAIN if has_own_counts or _ID_PATTERN.fullmatch(str(id)) else recognition


# ----------------------------------------------------------------------------- completions
# The dialect before Messages: Text Completions (``/v1/complete``).


class CompletionsDialect:
    """The mapping hooks for Text Completions (``/v1/complete``), also in Bedrock: a body is a stream of one event."""

    message_paths: ClassVar[tuple[str, ...]] = ("*",)
    text_paths: ClassVar[tuple[str, ...]] = ("completion",)

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* has a completion. Bedrock leaves out its type."""
        if not isinstance(event, dict) or not isinstance(event.get("completion"), str):
            return Recognition.NO
        return Recognition.CERTAIN if event.get("type") == "completion" else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return the text of one event, and its end if it has one."""
        kind = require_object(event).get("type")
        if kind == "error":
            yield take_error(event, anthropic_error(None, event))
            return
        if kind != "ping" and (kind not in ("completion", None) or "completion" not in event):
            raise unknown_event(event, "no completion in it")
        event.pop("type", None)
        if kind == "ping":
            return
        state.take_identity(event)
        if text := take_string(event, "completion"):
            yield ResponseDelta(content_delta=text)
        reason = take_string(event, "stop_reason")
        if reason is not None:
            yield ResponseDelta(raw_finish_reason=reason)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for ``stop_reason``: ``stop_sequence`` or ``max_tokens``."""
        return wire.FINISH_REASONS.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts of Bedrock. The API itself counts no tokens."""
        return counted(_METRICS_PATHS.accept(event), state)


_METRICS_PATHS: Final = CountPaths(
    {name: f"{wire.METRICS}.{key}" for name, key in wire.METRICS_COUNTS.items()}
)
