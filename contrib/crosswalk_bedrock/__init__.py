"""Amazon Bedrock: Converse and ConverseStream, of any model.

Facts: provider document "Amazon Bedrock Converse". A stream's events may come wrapped in their name, as from SDKs, or
as frames with the name. :mod:`crosswalk_bedrock.eventstream` decodes the binary framing. Bodies of InvokeModel have the
format of the model's vendor, so the vendor's provider reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from crosswalk.plugins import (
    ID,
    MODEL,
    Access,
    BatchFile,
    Block,
    Blocks,
    CallIds,
    CitationRef,
    ErrorInfo,
    ErrorKind,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    Names,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Said,
    Segment,
    SegmentType,
    ServerTool,
    UnknownEventError,
    UsageInfo,
    VendorErrors,
    WayBack,
    accept_array,
    accept_count,
    accept_object,
    accept_objects,
    count,
    counted,
    error_delta,
    error_info,
    event_type,
    hookimpl,
    look_at,
    look_at_count,
    requests_of,
    require_object,
    same,
    take_end,
    take_object,
    take_objects,
    take_same,
    take_string,
    take_whole,
    unknown_event,
)
from crosswalk_bedrock.eventstream import EventStreamError, framing

if TYPE_CHECKING:
    from crosswalk.plugins import Sign

__all__ = ["Bedrock", "EventStreamError", "plugin"]

_LONGEST_MS = 10**14  # three thousand years, nearly the longest duration
_FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
    "content_filtered": FinishReason.CONTENT_FILTER,
    "malformed_model_output": FinishReason.ERROR,
    "malformed_tool_use": FinishReason.ERROR,
    "": FinishReason.ERROR,  # it ended without a reason
}


def _locate() -> str:
    from crosswalk_bedrock.eventstream import base_url  # botocore is an extra, and takes long to import

    return base_url()


def _signer(address: str) -> Sign:
    from crosswalk_bedrock.eventstream import signer

    return signer(address)


ACCESS = Access(
    base_url="https://bedrock-runtime.{region}.amazonaws.com",
    base_url_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
    api_key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    locate=_locate,
    signer=_signer,
)


# ---------------------------------------------------------------------------------- blocks
# Reads content blocks and their pieces, whole and streamed (sections 2 and 3).
#
# A whole block and the pieces of a streamed one go through the same functions.


INDEX_KEY = "contentBlockIndex"
_FILE_KEYS = ("image", "audio", "video", "document")
DOCUMENT_TYPES = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}


class ContentBlocks(Blocks):
    """The content blocks of one message, in order of appearance. The last one belongs to the latest event."""

    index_key = INDEX_KEY

    def at(self, payload: dict[str, Any]) -> Block:
        """Return the block of *payload*, a new one if needed. Without an index it is the last one.

        The index is taken if it follows from the order of events.
        """
        index, last_block = self.take_index(payload), self.last
        block = self.find(index)
        if block is None:  # text and reasoning of a stream have no start, a piece opens them
            is_next = index == len(self.known) and (last_block is None or last_block.is_stopped)
            block = self.open(index or 0)
        else:
            is_next = block is last_block
        if index is not None and not is_next:
            payload[INDEX_KEY] = index
        self.last = block
        return block

    def whole(self, number: int, item: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block that came at once."""
        block = self.open(number)
        yield from self.read(BLOCK, block, item, state)
        yield from self.complete(block)

    def read(
        self, fields: FieldTable, block: Block, part: dict[str, Any], state: MappingState
    ) -> Iterable[ResponseDelta]:
        """The deltas of *part*, which is *block*, its start or a piece of it, by the table of such parts."""
        if part and part.keys().isdisjoint(_BLOCK_KEYS):
            state.note_unknown_part()
        said = _BlockSaid()
        said.blocks, said.block = self, block
        fields.read(part, said, state)
        return said.deltas if said.error is None else said.speak()

    def held_segment(self, block: Block, name: str, about: dict[str, Any]) -> Segment:
        """Return the segment of a server's tool, of its result, or of a file with only its start."""
        return _media(name, about) if name in _FILE_KEYS else super().held_segment(block, name, about)


class _BlockSaid(Said):
    """What a block says, or its start or a piece of it."""

    blocks: ContentBlocks
    block: Block


def _say(fields: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    said.deltas += said.blocks.say(SegmentType.TEXT, said.block, take_string(fields, key))


def _reason(fields: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    reasoning, blocks, block = take_object(fields, key) or {}, said.blocks, said.block
    text = take_object(reasoning, "reasoningText") or reasoning  # a piece has it at once
    said.deltas += blocks.say(SegmentType.REASONING, block, take_string(text, "text"))
    said.deltas += blocks.keep(block, "signature", take_string(text, "signature"))
    said.deltas += blocks.keep(block, "encrypted", take_string(reasoning, "redactedContent"))


def _say_cited(item: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    """A citation comes before the words that rest on it, as in a stream."""
    citations_content = take_object(item, key) or {}
    for citation in accept_objects(citations_content, "citations"):
        said.deltas.append(said.blocks.insert(_citation(citation)))
    for part in take_objects(citations_content, "content"):
        _say(part, "text", said, state)


def _cite(delta: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    citation = accept_object(delta, key)
    if citation is not None:
        said.deltas.append(said.blocks.insert(_citation(citation)))


def _call(start: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    tool_use = take_object(start, key)
    if tool_use is None:
        return
    kind = take_string(tool_use, "type")  # the owner of the call
    if kind is not None and kind.endswith("server_tool_use"):
        said.blocks.hold(said.block, key, _about(tool_use, kind))
    else:
        if kind not in (None, "tool_use"):
            tool_use["type"] = kind
        said.deltas.append(said.blocks.call(said.block, tool_use, state, id="toolUseId"))


def _argue(tool_use: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    said.deltas += said.blocks.argue(said.block, tool_use, key, state)


def _hold_result(start: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    tool_result = accept_object(start, key)
    if tool_result is not None:
        look_at(tool_result, "content", list)
        said.blocks.hold(said.block, key, _about(tool_result, "tool_result"))


def _add_to_result(delta: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    result_pieces = accept_array(delta, key)
    if result_pieces:
        delta.pop(key, None)
        tool_result = said.block.held.get(key, {"type": "tool_result"})
        tool_result["content"] = tool_result.get("content") or []
        tool_result["content"].extend(result_pieces)
        said.blocks.hold(said.block, key, tool_result)


def _hold_file(start: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    file = accept_object(start, key)
    if file is not None:
        said.blocks.hold(said.block, key, _file(file))


def _show_image(delta: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
    image = accept_object(delta, key)
    if image is not None:
        about = {**said.block.held.pop(key, {}), **_file(image)}
        said.deltas.append(said.blocks.insert(_media(key, about)))


def _about(item: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the metadata of a server tool's call or result: all of *item*, with its id as ``id``."""
    for name in ("toolUseId", "name", "type", "status"):
        look_at(item, name, str)
    metadata = take_whole(item)
    metadata.setdefault("type", kind)
    if "toolUseId" in metadata and "id" not in metadata:
        metadata["id"] = metadata.pop("toolUseId")
    return metadata


def _citation(citation: dict[str, Any]) -> Segment:
    """Return the segment of one citation: the cited words as content, all of its fields as metadata."""
    cited_words = [look_at(part, "text", str) or "" for part in accept_objects(citation, "sourceContent")]
    web = look_at(look_at(citation, "location", dict) or {}, "web", dict) or {}
    addresses = (look_at(web, "url", str), look_at(citation, "source", str), look_at(citation, "title", str))
    source = next((address for address in addresses if address), None)
    metadata = take_whole(citation)
    return Segment(SegmentType.CITATION, "".join(cited_words), metadata, (CitationRef(source=source),))


def _file(item: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of *item*, a file, except those of a wrong type."""
    look_at(item, "format", str)
    source = look_at(item, "source", dict) or {}
    look_at(source, "bytes", str)
    look_at(look_at(source, "s3Location", dict) or {}, "uri", str)
    return take_whole(item)


def _media(kind: str, file: dict[str, Any]) -> Segment:
    """The segment of a *file*: its bytes in base64 or its address as content, the rest as metadata."""
    source = file.get("source") or {}
    s3_location = source.get("s3Location") or {}
    data = source.pop("bytes", None)
    content = s3_location.pop("uri", None) if data is None else data
    if not s3_location:
        source.pop("s3Location", None)
    if not source:
        file.pop("source", None)
    metadata: dict[str, Any] = {"kind": kind}
    format_name = file.get("format")
    if format_name and kind == "document":
        metadata["media_type"] = DOCUMENT_TYPES.get(format_name, "application/octet-stream")
    elif format_name:
        metadata["media_type"] = f"{kind}/{format_name}"
    if content is not None:
        metadata["encoding"] = "url" if data is None else "base64"
    if file:
        metadata[kind] = file
    return Segment(SegmentType.MEDIA, content or "", metadata)


_SPOKEN = {"text": FieldRow("text", _say), "reasoningContent": FieldRow("reasoning", _reason)}
_STARTED = {
    "toolUse": FieldRow("tool_calls", _call),
    "toolResult": FieldRow("segments", _hold_result),
    **dict.fromkeys(_FILE_KEYS, FieldRow("segments", _hold_file)),
}
_WHOLE = {**_SPOKEN, "citationsContent": FieldRow("segments", _say_cited), **_STARTED}
_PIECE = {
    **_SPOKEN,
    "citation": FieldRow("segments", _cite),
    "toolUse.input": FieldRow("tool_calls", _argue),
    "toolResult": FieldRow("segments", _add_to_result),
    "image": FieldRow("segments", _show_image),
}
BLOCK = FieldTable(_WHOLE, at="output.message.content[]")
START = FieldTable(_STARTED, at="contentBlockStart.start")
PIECE = FieldTable(_PIECE, at="contentBlockDelta.delta")
_BLOCK_KEYS = {*_WHOLE, "citation"}
"""What a block, or a piece of one, may hold; one that holds nothing of it is new."""

# ---------------------------------------------------------------------------------- events
# The kinds of events: wrapped, framed, or a whole body. Also the paths of their residue (sections 1 to 3).


MARK_KEYS = {
    "messageStart": ("role",),
    "contentBlockStart": (INDEX_KEY, "start"),
    "contentBlockDelta": (INDEX_KEY, "delta"),
    "contentBlockStop": (INDEX_KEY,),
    "messageStop": ("stopReason",),
    "metadata": ("usage", "metrics"),
}
"""The keys of every event of the kind, under its name and in a frame."""
_PART_KEYS = {"contentBlockStart": "start", "contentBlockDelta": "delta", "contentBlockStop": ""}
"""The key of the block's index."""


@attrs.frozen(eq=False, repr=False)
class Event:
    """An event without its wrapping.

    Attributes:
        kind: the name of its type, or ``body``, or ``error``.
        payload: its content, or the exception of an error.
        wrapper: the key of the payload, or ``None`` for framed events and bodies.
        name: the exception's name, or ``None`` if only its payload has it, and for other events.
    """

    kind: str
    payload: Any
    wrapper: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any], frame_name: str | None) -> Event:
        """Return the kind of *event*. SDKs give ``{"messageStop": {…}}``, and a *frame_name* has the name separately.

        Raises:
            WireTypeError: the value under its name is not an object.
            UnknownEventError: its type is unknown.
        """
        for name in MARK_KEYS:
            if event.get(name) is not None:
                return cls(name, require_object(event[name], name), name)
        for name in event:
            if name.endswith("Exception") and event[name] is not None:
                return cls("error", event[name], name, name)
        if event.get("error") is not None:
            return cls("error", event["error"], "error")
        frame_name = frame_name or ""
        if frame_name in MARK_KEYS:
            return cls(frame_name, event)
        if frame_name.endswith("Exception"):
            return cls("error", event, None, frame_name)
        if "output" in event or "stopReason" in event:
            return cls("body", event)
        if isinstance(event.get("message"), str) and len(event) <= 2:
            return cls("error", event)  # an HTTP error without its status
        word = event_type(event) or frame_name or next(iter(event), "")[:60]
        raise unknown_event({"type": word or None})


def at_home(event: dict[str, Any], unwrapped_event: Event, last_block: Block | None) -> dict[str, Any]:
    """Return the residue of *event* at the path of a body.

    For ``messageStart`` that is ``output.message``, for an event of a content block ``output.message.content`` under the
    block's index, and for the others, and padding, the top. It never replaces another value, and then keeps its path.

    Args:
        event: the residue of the event.
        unwrapped_event: the kind of the event.
        last_block: the block of the latest event, or ``None`` before the first.
    """
    if unwrapped_event.kind in ("body", "error"):
        return event
    payload = event if unwrapped_event.wrapper is None else event.pop(unwrapped_event.wrapper, {})
    if payload and "output" not in payload:
        message = _moved(payload, unwrapped_event.kind, last_block)
        if message:
            payload["output"] = {"message": message}
    if unwrapped_event.wrapper is None:
        return payload
    return (
        {unwrapped_event.wrapper: payload, **event} if payload.keys() & event.keys() else {**payload, **event}
    )


def _moved(payload: dict[str, Any], kind: str, last_block: Block | None) -> dict[str, Any]:
    """Take the residue of the message out of *payload*."""
    if kind == "messageStart":
        return {name: payload.pop(name) for name in [*payload] if name != "p"}
    if kind not in _PART_KEYS:
        return {}
    part_key = _PART_KEYS[kind]
    index, fragment = payload.pop(INDEX_KEY, None), payload.pop(part_key, None) if part_key else None
    if index is None and fragment is None:
        return {}
    item = {"index": last_block.index if index is None and last_block is not None else index}
    if fragment is not None:
        item["deltas" if part_key == "delta" else part_key] = [fragment] if part_key == "delta" else fragment
    return {"content": [item]}


# Errors: exceptions by name, as HTTP bodies, as events of a stream and in frames (section 7).


_ERRORS = VendorErrors("crosswalk_bedrock", "bedrock")
_EXACT_KINDS = (ErrorKind.AUTHENTICATION, ErrorKind.MODEL_UNAVAILABLE, ErrorKind.CONTEXT_OVERFLOW)
"""Messages that are more exact than the name, because every complaint about a request is a ``ValidationException``."""


def bedrock_error(status: int | None, body: Any, name: str | None = None) -> ErrorInfo:
    """Read an error.

    Args:
        status: the HTTP status, or ``None`` for an exception inside a stream.
        body: the exception: ``message``, perhaps ``Message``, perhaps with its name in ``__type`` or ``code``.
        name: the exception's name, if it is not in the body. Over HTTP only the header ``x-amzn-ErrorType``
            has it, and the status decides.
    """
    named_body = {**body, "__type": name} if name and isinstance(body, dict) else body
    info = error_info(status, named_body)
    info = attrs.evolve(info, code=name or info.code, raw=body if body != "" else None)
    return info if info.kind in _EXACT_KINDS else _ERRORS.refined(info)


# -------------------------------------------------------------------------------- provider


class _Message:
    """The progress of a message.

    Attributes:
        event: the present event.
        blocks: its content blocks.
        has_begun: whether its start has arrived.
        has_metadata: whether the metadata after its end, with the usage, has arrived.
    """

    event = Event("body", {})
    has_begun = False
    has_metadata = False

    def __init__(self) -> None:
        self.blocks = ContentBlocks()

    def begin(self) -> None:
        if self.has_begun:
            raise UnknownEventError("a second message in one stream", event_type="messageStart")
        self.has_begun = True


_ABOUT: Final = {
    "usage.totalTokens": count("total_tokens"),
    "metrics.latencyMs": FieldRow("request_duration", None),
    "trace.promptRouter.invokedModelId": MODEL,
    "trace.guardrail": FieldRow("segments", None),
    "ResponseMetadata.RequestId": ID,
    "$metadata.requestId": ID,
}
_END: Final = FieldRow("finish_reason", None)
_ROLE: Final = same("assistant")


class Bedrock:
    """The hooks for Converse and ConverseStream.

    Attributes:
        rows: what code reads beside the tables, in a body and in a stream.
    """

    rows: ClassVar[Mapping[str, Mapping[str, FieldRow]]] = {
        "body": {"output.message.role": _ROLE, "stopReason": _END, **_ABOUT},
        "stream": {
            "messageStart.role": _ROLE,
            "messageStop.stopReason": _END,
            **{f"metadata.{path}": row for path, row in _ABOUT.items()},
        },
    }

    build_request = staticmethod(requests_of("crosswalk_bedrock.requests"))
    map_error = staticmethod(hookimpl(bedrock_error))
    block_fields, start_fields, piece_fields = BLOCK, START, PIECE
    usage_fields = FieldTable(
        {
            "inputTokens": count("prompt_tokens"),
            "outputTokens": count("completion_tokens"),
            "cacheReadInputTokens": count("cached_tokens"),
            "cacheReadInputTokenCount": count("cached_tokens"),
            "cacheWriteInputTokens": count("cache_write_tokens"),
            "cacheWriteInputTokenCount": count("cache_write_tokens"),
        },
        at=("metadata.usage", "usage"),
    )

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. Frames have padding, and SDKs wrap events without it."""
        return ProviderInfo(
            title="Amazon Bedrock",
            model_classes="crosswalk_bedrock:models.toml",
            names=Names(otel="aws.bedrock", prices="aws"),
            endpoints=("/model/{modelId}/converse", "/model/{modelId}/converse-stream"),
            documentation="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
            message_paths=("output.message", "content[]"),
            text_paths=(
                "delta.text",
                "delta.reasoningContent.text",
                "delta.toolUse.input",
                "contentBlockDelta.delta.text",
                "contentBlockDelta.delta.reasoningContent.text",
                "contentBlockDelta.delta.toolUse.input",
            ),
            timestamp_key="p",
            pieces=("output.message.content[].deltas",),
            framing=framing,
            access=ACCESS,
            way_back=WayBack(
                takes_citations=True,
                shows_pictures=True,
                moves_system=True,
                knows_failures=True,
                server_tools=(ServerTool("*server_tool_use", "*_result"),),
            ),
            # The API takes a few characters more, the models behind it do not.
            call_ids=CallIds(pattern="[a-zA-Z0-9_-]+"),
            call_names="[a-zA-Z0-9_-]{1,64}",
            # https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html; the job's
            # ``modelInvocationType`` is ``Converse``.
            batch_file=BatchFile(
                id="recordId", body="modelInput", names_endpoint=False, model="job", results="bedrock_batch"
            ),
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: certainly by names that only this API has, possibly as a bare error."""
        match event:
            case {"output": {"message": {"content": _}}, "stopReason": _} | {"contentBlockIndex": int()}:
                return Recognition.CERTAIN
            case dict() if any(_is_event(name, payload) for name, payload in event.items()):
                return Recognition.CERTAIN
            case {"message": str()} | {"Message": str()} if len(event) == 1:
                return Recognition.POSSIBLE
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        message = state.own(_Message)
        message.event = Event.of(event if type(event) is dict else require_object(event), state.event_name)
        payload, blocks = message.event.payload, message.blocks
        if message.event.kind == "contentBlockDelta":
            block = blocks.at(payload)
            delta = require_object(payload.get("delta"), "contentBlockDelta.delta")
            return blocks.read(PIECE, block, delta, state)
        return self._deltas(event, message, state)

    def _deltas(
        self, event: dict[str, Any], message: _Message, state: MappingState
    ) -> Iterator[ResponseDelta]:
        unwrapped_event, blocks = message.event, message.blocks
        payload = unwrapped_event.payload
        match unwrapped_event.kind:
            case "contentBlockStart":
                block = blocks.at(payload)
                start = require_object(payload.get("start"), "contentBlockStart.start")
                yield from blocks.read(START, block, start, state)
            case "contentBlockStop":
                yield from blocks.stop(payload)
            case "messageStart":
                message.begin()
                take_same(payload, "role", "assistant")
            case "messageStop":
                yield from blocks.flush()
                yield from take_end(payload, "stopReason", state, default="")
                if not message.has_metadata:
                    state.note("usage", Provenance.CUT)  # until it comes
            case "metadata":
                message.has_metadata = True
                state.note("usage", None)
                yield from blocks.flush()
                yield from _metadata(payload, state)
            case "error":
                yield from blocks.flush()
                yield error_delta(bedrock_error(None, payload, unwrapped_event.name))
                if unwrapped_event.wrapper is None:
                    event.clear()
                else:
                    del event[unwrapped_event.wrapper]  # extra keys are not part of the error
            case _:
                message.begin()
                sent_message = take_object(take_object(payload, "output") or {}, "message") or {}
                take_same(sent_message, "role", "assistant")
                for number, item in enumerate(take_objects(sent_message, "content")):
                    yield from blocks.whole(number, item, state)
                yield from _metadata(payload, state)
                yield from take_end(payload, "stopReason", state, default="")

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        return _FINISH_REASONS.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``.

        ``inputTokens`` is without the tokens that the cache had or got: the three make up the prompt. Amazon's own models
        count the caches under other names when they are not asked through Converse.
        """
        unwrapped_event = state.own(_Message).event
        usage = (
            accept_object(unwrapped_event.payload, "usage")
            if unwrapped_event.kind in ("metadata", "body")
            else None
        )
        if not usage:
            return None
        counts = self.usage_fields.accept_counts(usage)
        if "prompt_tokens" in counts:  # a part is not the count
            counts["prompt_tokens"] += counts.get("cached_tokens", 0) + counts.get("cache_write_tokens", 0)
        if "cacheDetails" in usage:
            counts |= _lifetimes(usage)
        info = counted(counts, state)
        if "serverToolUsage" in usage:
            accept_object(usage, "serverToolUsage")  # mostly empty, which carries no information
        total = look_at_count(usage, "totalTokens")
        if usage.get("totalTokens") is None or (info is not None and total == info.total_tokens):
            usage.pop("totalTokens", None)
        return info

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``. The residue of a stream's events has the paths of a body."""
        message = state.own(_Message)
        return at_home(event, message.event, message.blocks.last)


def _lifetimes(usage: dict[str, Any]) -> dict[str, int]:
    """Take the tokens written to the cache by lifetime. Other lifetimes stay in the usage."""
    counts: dict[str, int] = {}
    for item in accept_objects(usage, "cacheDetails"):
        ttl = item.get("ttl")
        name = f"cache_write_{ttl}_tokens"
        if (
            ttl in ("5m", "1h")
            and name not in counts
            and (count := accept_count(item, "inputTokens")) is not None
        ):
            counts[name] = count
            del item["ttl"]
    return counts


def _metadata(payload: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Take the model, the duration, and the findings of a guardrail.

    The duration stays in the extensions as well, because a measured one differs.
    """
    for name, key in (("ResponseMetadata", "RequestId"), ("$metadata", "requestId")):
        if name in payload:
            state.take_identity(take_object(payload, name) or {}, id=key)
    metrics = accept_object(payload, "metrics") or {}
    latency = look_at_count(metrics, "latencyMs")
    if latency is not None and latency <= _LONGEST_MS:
        state.request_duration = timedelta(milliseconds=latency)
    if "trace" in payload and (trace := accept_object(payload, "trace")):
        state.take_identity(take_object(trace, "promptRouter") or {}, model="invokedModelId")
        for segment in guardrail_segments(trace):
            yield ResponseDelta(segment=segment)


def _is_event(name: str, payload: Any) -> bool:
    """Return whether *payload* under *name* is a wrapped event or exception."""
    is_exception = name.endswith("Exception")
    return type(payload) is dict and (
        is_exception or (name in MARK_KEYS and payload.keys() >= {*MARK_KEYS[name]})
    )


# The findings of a guardrail in the prompt and in the answer (section 8). The trace stays in the extensions completely.
# The findings are also segments.


_FINDING_KEYS = (
    # the policy, its list, what names the harm, how bad it is
    ("topicPolicy", "topics", "name", None),
    ("contentPolicy", "filters", "type", "confidence"),
    ("wordPolicy", "customWords", None, None),
    ("wordPolicy", "managedWordLists", "type", None),
    ("sensitiveInformationPolicy", "piiEntities", "type", None),
    ("sensitiveInformationPolicy", "regexes", "name", None),
    ("contextualGroundingPolicy", "filters", "type", None),
)
_HARMLESS_ACTIONS = (None, "NONE")


def guardrail_segments(trace: dict[str, Any]) -> Iterator[Segment]:
    """The segments for what the guardrail of *trace* acted on: one for the prompt, one for the answer."""
    guardrail = look_at(trace, "guardrail", dict) or {}
    for name, target in (("inputAssessment", "prompt"), ("outputAssessments", "answer")):
        assessments = look_at(guardrail, name, dict) or {}
        findings = [
            finding
            for id in [*assessments]
            for assessment in _objects(assessments, id)
            for finding in _findings(assessment)
        ]
        if findings:
            yield Segment(SegmentType.SAFETY, "", {"of": target}, tuple(findings))


def _findings(assessment: dict[str, Any]) -> Iterator[SafetyAnnotation]:
    for policy, list_key, name_key, level_key in _FINDING_KEYS:
        for finding in _objects(look_at(assessment, policy, dict) or {}, list_key):
            action = look_at(finding, "action", str)
            if action not in _HARMLESS_ACTIONS:
                category = look_at(finding, name_key, str) if name_key else None
                severity = look_at(finding, level_key, str) if level_key else None
                yield SafetyAnnotation(category or list_key, severity, blocked=action == "BLOCKED")


def _objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the object under *key*, or those of an array. They stay, like an empty array."""
    value = container.get(key)
    if type(value) is list:
        return accept_objects(container, key) if value else []
    item = look_at(container, key, dict)
    return [item] if item else []


plugin = Bedrock()
