"""The Messages dialect (``/v1/messages``), which other servers answer in too, and the Text Completions before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from crosswalk.plugins import (
    CREATED,
    ID,
    MODEL,
    TEXT,
    Block,
    Blocks,
    CitationRef,
    CountPaths,
    ErrorInfo,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Said,
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
    count,
    counted,
    error_info,
    hookimpl,
    look_at,
    look_at_cost,
    messages as wire,
    require_object,
    same,
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
# Reads content blocks and their pieces by a table for each type, whole and streamed (sections 2.1 and 3).
#
# A whole block is a start and a stop without pieces, so that both forms take one path. The extra fields of a call
# follow it in an empty segment of its type.


_SOURCE_KEYS = ("url", "source", "file_id", "document_title", "title")


class Message(Blocks):
    """A message while it arrives: its content blocks, in order of appearance, and its counts.

    Attributes:
        current: the block that the last event was about.
        counts: its tokens, as last reported.
        first: those of its start, by the provider's names for them.
        starts: how often its start has arrived.
    """

    current: Block

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.first: dict[str, int] = {}
        self.starts = 0

    def begin(self, message: dict[str, Any], state: MappingState, *, whole: bool) -> None:
        """Count the starts: that of a body, or that of a stream, which may have content already (section 3).

        Raises:
            TrailingContentError: it is a second message.
        """
        self.starts += 1
        is_same = message.get("id") == state.id is not None
        if self.starts > 1 and (whole or message.get("content") or not is_same or state.has_ended(0)):
            raise TrailingContentError("a second message has begun")

    def place(self, event: dict[str, Any], name: str) -> None:
        """Move what *event* has left under *name* to where the message has it: into ``content``, with the block's index."""
        inner = event.get(name)
        if not inner or self.last is None or "content" in event:
            return
        block = self.current
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
        index = event.get("index")
        if type(index) is int and index in self.known:  # nearly always
            del event["index"]
            return index
        index = accept_count(event, "index")
        if index is None and "index" in event:
            others = (block for block in self.known.values() if block is not self.last)
            if not all(block.is_stopped for block in others):
                take_count(event, "index")
        return index

    def take_other(self, block: dict[str, Any], state: MappingState) -> Iterable[ResponseDelta]:
        """Take all of *block*, an item of a server's tool or a file. One of an unknown type stays."""
        kind = self.current.kind
        if not wire.is_known_block(kind):
            block["type"] = kind
            if kind not in wire.STATE_BLOCKS:
                state.note_unknown_part()
            return ()
        if wire.is_server_call(kind):
            tool_input = take_object(block, "input")
            self.hold(self.current, kind, {**_item(kind, block), "input": tool_input})
            return ()
        wire_block = wire.BLOCKS.get(kind)
        type = SegmentType.TOOL_CALL if wire_block is None else wire_block.segment
        return (self.insert(Segment(type, "", _item(kind, block))),)

    def cite(self, citation: dict[str, Any]) -> ResponseDelta:
        """Return the delta of a *citation* of the block."""
        for name in ("cited_text", *_SOURCE_KEYS):
            look_at(citation, name, str)
        metadata = take_whole(citation)
        source = next((metadata[name] for name in _SOURCE_KEYS if metadata.get(name)), None)
        text = metadata.pop("cited_text", None) or ""
        return self.insert(Segment(SegmentType.CITATION, text, metadata, (CitationRef(source=source),)))

    def follow(self, citation: dict[str, Any]) -> Iterator[ResponseDelta]:
        """Yield the deltas of a *citation* that comes after its text. A whole block has them before it."""
        if self._said == (SegmentType.TEXT, self.current):
            yield self.insert(Segment(SegmentType.TEXT, "", {"citations": "follow"}))
        yield self.cite(citation)


class MessageSaid(Said):
    """What the last event says, and the *message* so far."""

    def __init__(self) -> None:
        super().__init__()
        self.message = Message()


def _kind_of(block: dict[str, Any]) -> str:
    kind = block.pop("type", None)
    if type(kind) is not str:
        block["type"] = kind
        raise wrong_type(block, "type", expected="string")
    if kind == "tool_use":
        block.setdefault("input", None)  # a call may have none
    return kind


def _item(kind: str, block: dict[str, Any]) -> dict[str, Any]:
    """Take all of *block*, an item of a server's tool or a file. Its fields about a call are text."""
    metadata: dict[str, Any] = {"type": kind}
    metadata |= {name: take_string(block, name) for name in ("id", "name", "tool_use_id") if name in block}
    return metadata | take_whole(block)


def _take_text(block: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    said.deltas += said.message.say(SegmentType.TEXT, said.message.current, take_string(block, key) or None)


def _take_thinking(block: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    said.deltas += said.message.say(SegmentType.REASONING, said.message.current, take_string(block, key))


def _take_signature(block: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    said.deltas += said.message.keep(said.message.current, "signature", take_string(block, key))


def _take_encrypted(block: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    message = said.message
    data = take_string(block, key) or ""
    facts = {"is_foreign": True} if data.startswith(wire.ENCRYPTED) else {}
    said.deltas += message.keep(message.current, "encrypted", data.removeprefix(wire.ENCRYPTED), **facts)


def _take_citations(block: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    said.deltas += map(said.message.cite, accept_objects(block, key))


def _take_citation(delta: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    if citation := accept_object(delta, key):
        said.deltas += said.message.follow(citation)


def _take_call(block: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    """Take a call. The next request repeats its extra fields. Its id may be that of another call."""
    message = said.message
    said.deltas.append(message.call(message.current, block, state))
    id_field = {"id": block.pop("id")} if "id" in block else {}
    fields = take_whole(block) if block else {}
    metadata = {name: value for name, value in fields.items() if value is not None} if fields else {}
    block.update(id_field)
    if metadata:
        said.deltas.append(message.insert(Segment(SegmentType.TOOL_CALL, "", metadata)))


def _take_arguments(delta: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    message = said.message
    block = message.current
    if not block.held and block.kind != "tool_use":
        raise WireTypeError("delta", expected=f"a piece of a block of type {block.kind!r}", got=delta)
    said.deltas += message.argue(block, delta, key, state)


_TEXT: Final = FieldRow("text", _take_text)
_THINKING: Final = FieldRow("reasoning", _take_thinking)
_SIGNATURE: Final = FieldRow("segments", _take_signature)

BLOCKS: Final = {
    "text": FieldTable({"citations": FieldRow("segments", _take_citations), "text": _TEXT}),
    "thinking": FieldTable({"thinking": _THINKING, "signature": _SIGNATURE}),
    "redacted_thinking": FieldTable({"data": FieldRow("segments", _take_encrypted)}),
    "tool_use": FieldTable(dict.fromkeys(("id", "name", "input"), FieldRow("tool_calls", _take_call))),
}
"""The tables of the blocks that are not taken whole, by type."""
PIECES: Final = {
    "text_delta": FieldTable({"text": _TEXT}),
    "citations_delta": FieldTable({"citation": FieldRow("segments", _take_citation)}),
    "thinking_delta": FieldTable({"thinking": _THINKING}),
    "signature_delta": FieldTable({"signature": _SIGNATURE}),
    "input_json_delta": FieldTable({"partial_json": FieldRow("tool_calls", _take_arguments)}),
}
"""The tables of the pieces of blocks, by type."""


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


def _take_start(event: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    said.message.begin(event[key], state, whole=False)
    MESSAGE.read(event[key], said, state)


def _take_content(holder: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    """Take the blocks. Content that is not a list of objects is refused, after the text before it."""
    message = said.message
    content = holder[key]
    if type(content) is not list or not content:
        content = take_objects(holder, key)
    for number, block in enumerate(content):
        if type(block) is not dict:
            take_objects(holder, key)
        opened = message.current = message.open(number, _kind_of(block))
        opened.is_stopped = True
        if opened.kind in BLOCKS:
            BLOCKS[opened.kind].read(block, said, state)
        else:
            said.deltas += message.take_other(block, state)
            said.deltas += message.complete(opened)


def _take_block(event: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    """Take the start of a block, which for many types is all of it."""
    message = said.message
    block, number, index = event[key], len(message.known), message.take_index(event)
    if index not in (None, number):
        event["index"] = index  # what the order does not tell
    opened = message.current = message.open(number if index is None else index, _kind_of(block))
    if opened.kind in BLOCKS:
        BLOCKS[opened.kind].read(block, said, state)
    else:
        said.deltas += message.take_other(block, state)


def _take_piece(event: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    message = said.message
    index = message.take_index(event)
    block = message.last if index is None else message.known.get(index)
    if index is not None and (block is None or block is not message.last):
        event["index"] = index
    if block is not None:
        message.current = block
        if block.kind not in BLOCKS and not wire.is_known_block(block.kind):
            return
    delta = event[key]
    kind = delta.get("type")
    if type(kind) is str and kind in PIECES:
        del delta["type"]
    else:
        kind = take_string(delta, "type") or ""
        raise UnknownEventError(f"a piece of a block of an unknown type ({kind[:60] or 'no type'})")
    if block is None:
        number = len(message.known) if index is None else index
        message.current = message.open(number, wire.PIECES[kind].block)
    PIECES[kind].read(delta, said, state)


def _take_details(part: dict[str, Any], key: str, said: MessageSaid, state: MappingState) -> None:
    """Take why the model declined."""
    details = accept_object(part, key)
    if details is not None and look_at(details, "type", str) == "refusal":
        said.deltas.append(ResponseDelta(segment=_refusal(details)))


def _take_reason(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take why the model stopped. After that, only ``message_stop`` comes."""
    said.deltas += take_end(part, key, state)


_COUNTS: Final = {f"usage.{path}": count(name) for name, path in _PATHS_BY_COUNT.items()}
_METRICS: Final = {f"{wire.METRICS}.{key}": count(name) for name, key in wire.METRICS_COUNTS.items()}
_ENDING: Final = {
    "stop_details": FieldRow("segments", _take_details),
    "stop_reason": FieldRow("finish_reason", _take_reason),
}
MESSAGE: Final = FieldTable(
    {
        "id": ID,
        "model": MODEL,
        "created": CREATED,
        "type": same("message"),
        "role": same("assistant"),
        "content[]": FieldRow("segments", _take_content, inside=BLOCKS),
        **_ENDING,
        **_COUNTS,
    }
)
"""The table of a message: of a body, and of the start of a stream."""


class AnthropicDialect:
    """The hooks for ``/v1/messages``, whole and streamed.

    A provider with a server that answers in it too puts an instance, or one of a subclass, into its ``DialectFamily``.

    Attributes:
        title: the provider's name as people write it.
        documentation: the URL of the provider's documentation.
        finish_reasons: the provider's stop reasons.
        message_paths: see ``ProviderInfo``.
        text_paths: see ``ProviderInfo``.
        fields: the table of each type of event that says anything. A body is one.
    """

    title: ClassVar[str] = "Anthropic Messages"
    documentation: ClassVar[str | None] = None
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = wire.FINISH_REASONS
    message_paths: ClassVar[tuple[str, ...]] = ("content[]", "*")
    text_paths: ClassVar[tuple[str, ...]] = ("delta.text", "delta.thinking", "delta.partial_json")
    fields: ClassVar[Mapping[str, FieldTable]] = {
        "message": MESSAGE,
        "message_start": FieldTable(
            {"message": FieldRow("message", _take_start, inside={"message": MESSAGE})}
        ),
        "content_block_start": FieldTable(
            {"content_block": FieldRow("segments", _take_block, inside=BLOCKS)}
        ),
        "content_block_delta": FieldTable({"delta": FieldRow("segments", _take_piece, inside=PIECES)}),
        "message_delta": FieldTable({**{f"delta.{key}": row for key, row in _ENDING.items()}, **_COUNTS}),
        "message_stop": FieldTable({**_ENDING, **_METRICS}),
    }
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
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "message":
            fits = event.get("role") == "assistant" and "content" in event and "usage" in event
        else:
            leaf = wire.EVENTS.get(kind) if isinstance(kind, str) else None
            fits = leaf == "" or (leaf is not None and isinstance(event.get(leaf), dict))
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. The type of the event stays for the hooks after it."""
        if type(event) is not dict:
            event = require_object(event)
        kind, event_said = event.get("type"), state.own(MessageSaid)
        # llama.cpp's error has no ``error`` inside. Only the event's name identifies it.
        if kind == "error" or state.event_name == "error" or event.get("error"):
            error = take_error(event, anthropic_error(None, event))
            return (*event_said.message.flush(), error)
        event_said.deltas = []
        if kind == "content_block_delta" and type(event.get("delta")) is dict:
            _take_piece(event, "delta", event_said, state)  # the only row of most events
        elif kind == "content_block_stop":
            return event_said.message.stop(event)
        elif kind == "ping":
            del event["type"]  # one may come before the dialect is known
        elif type(kind) is str and kind in self.fields:
            self._read(kind, event, event_said, state)
        else:
            unknown_error = unknown_event(event)
            take_string(event, "type")
            raise unknown_error
        if event_said.error is None:
            return event_said.deltas
        failed_said = Said()
        failed_said.deltas, failed_said.error, event_said.error = event_said.deltas, event_said.error, None
        return failed_said.speak()

    def _read(self, kind: str, event: dict[str, Any], event_said: MessageSaid, state: MappingState) -> None:
        """Read *event* by the table of its *kind*."""
        if kind == "message":
            event_said.message.begin(event, state, whole=True)
        elif kind == "message_delta" or kind == "message_stop":
            event_said.deltas += event_said.message.flush()
        leaf = wire.EVENTS.get(kind)
        if leaf and type(event.get(leaf)) is not dict:
            require_object(event.get(leaf), leaf)
        if (
            not leaf
            and event.get("stop_reason") is None
            and getattr(state.ends.get(0), "finish_word", None) is None
        ):
            event["stop_reason"] = ""  # the message has ended without a reason
        self.fields[kind].read(event, event_said, state)

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
        usage, progress = usage or {}, state.own(MessageSaid).message
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
        return counted(counts, state, look_at_cost(usage) if usage else None)

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
                    state.own(MessageSaid).message.place(remaining, "delta")
            case "content_block_start":
                state.own(MessageSaid).message.place(remaining, "content_block")
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
            metric = accept_count(metrics, key)
            if metric is not None:
                known[name] = metric


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
    fields: ClassVar[FieldTable] = FieldTable(
        {
            "id": ID,
            "model": MODEL,
            "created": CREATED,
            "completion": TEXT,
            "stop_reason": _ENDING["stop_reason"],
            **_METRICS,
        }
    )
    text_paths: ClassVar[tuple[str, ...]] = fields.text_paths
    map_usage = staticmethod(fields.map_usage)

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* has a completion. Bedrock leaves out its type."""
        if not isinstance(event, dict) or not isinstance(event.get("completion"), str):
            return Recognition.NO
        return Recognition.CERTAIN if event.get("type") == "completion" else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return the text of one event, and its end if it has one."""
        kind = require_object(event).get("type")
        if kind == "error":
            return (take_error(event, anthropic_error(None, event)),)
        if kind != "ping" and (kind not in ("completion", None) or "completion" not in event):
            raise unknown_event(event, "no completion in it")
        event.pop("type", None)
        return () if kind == "ping" else self.fields.map_delta(event, state)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for ``stop_reason``: ``stop_sequence`` or ``max_tokens``."""
        return wire.FINISH_REASONS.get(reason)
