"""Requests to Converse and ConverseStream.

Facts: the service model of bedrock-runtime in botocore; provider document "Amazon Bedrock Converse".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote

from crosswalk.plugins import (
    Adaptation,
    AdaptationKind,
    AudioPart,
    CacheMark,
    ChatMessage,
    ChatRequest,
    ChatResponse,
    ContentPart,
    DocumentPart,
    Drops,
    FilePart,
    HTTPRequest,
    ImagePart,
    NamedTool,
    RequestRow,
    RequestTable,
    Role,
    SearchResultPart,
    Segment,
    SegmentType,
    TextPart,
    ToolCall,
    ToolChoice,
    Turn,
    VideoPart,
    alternating,
    arguments_object,
    as_json_object,
    below,
    cache_mark,
    content_parts,
    details_of,
    dump_json,
    media_type_of,
    message_of,
    own_items,
    part_marks,
    put_options,
    segments_of,
    system_text,
    system_texts,
    text_in,
    tool_names,
    unsupported_part,
    word_of,
    words_of,
    written_mark,
)
from crosswalk_bedrock import DOCUMENT_TYPES

_FORMATS = {media_type: word for word, media_type in DOCUMENT_TYPES.items()}
_IMAGE_FORMATS = ("gif", "jpeg", "png", "webp")
_VIDEO_FORMATS = {"quicktime": "mov", "matroska": "mkv", "ms-wmv": "wmv", "3gpp": "three_gp"}
_NON_NAME_PATTERN = re.compile(r"[^A-Za-z0-9()\[\]-]+")


_CHANGE_BLOCKS = {"tool_addition": "toolAddition", "tool_removal": "toolRemoval"}
"""The block for each change of the tools, by Anthropic's word for it."""
_SYSTEM_KEY = "system"
"""Stands among the blocks of the user for those of a message of the system."""


def _reference(tool: Any) -> dict[str, Any]:
    """Return *tool*, Anthropic's reference to a declared one. Others have no place here, and raise a ``LookupError``."""
    return {"name": {tool["type"]: tool}["tool_reference"]["name"]}


CONVERSE = RequestTable(
    "bedrock",
    "Converse",
    ("/converse", "/converse-stream"),
    (
        *below(
            "inferenceConfig",
            RequestRow("temperature", "temperature"),
            RequestRow("topP", "top_p"),
            RequestRow("maxTokens", "max_tokens"),
            RequestRow("stopSequences", "stop"),
        ),
        RequestRow(
            "outputConfig.effort",
            "reasoning_effort",
            words={word: word for word in ("low", "medium", "high", "xhigh", "max")},
        ),
        RequestRow("toolConfig.toolChoice", "tool_choice", words={"auto": "auto", "required": "any"}),
        *below(
            "toolConfig.tools[].toolSpec",
            RequestRow("name", "tool.name"),
            RequestRow("description", "tool.description"),
            RequestRow("inputSchema.json", "tool.parameters"),
            RequestRow("strict", "tool.strict"),
        ),
        *below(
            "outputConfig.textFormat.structure.jsonSchema",
            RequestRow("schema", "format.schema"),
            RequestRow("name", "format.name"),
            RequestRow("description", "format.description"),
        ),
        RequestRow(
            "serviceTier.type",
            "service_tier",
            words={word: word for word in ("default", "flex", "priority")},
        ),
        RequestRow("requestMetadata", "metadata"),
        RequestRow(
            "messages[].content[].cachePoint", "cache.mark", write=lambda mark: {"type": "default", **mark}
        ),
        RequestRow("messages[].content[].cachePoint.ttl", "cache.ttl"),
        *below(
            "messages[].content[]",
            RequestRow("video", "part.video"),
            RequestRow("document.context", "part.context"),
            RequestRow("document.citations", "part.citations"),
            *(
                RequestRow(path, f"part.{name}", write=lambda is_cited: is_cited or None)
                for path, name in (("searchResult", "search_result"), ("document.source.text", "document"))
            ),
            *(
                RequestRow(f"{block}.tool", f"message.{name}", write=_reference)
                for name, block in _CHANGE_BLOCKS.items()
            ),
        ),
        RequestRow("toolConfig.tools[].cachePoint", "cache.tools"),
    ),
)
"""What the API takes, and where."""


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for Converse.

    Raises:
        UnsupportedRequestError: a file by its URL or of an unknown type, or anything but text for the system.
    """
    drops = Drops(request)
    marks = part_marks(request, CONVERSE)
    system, turns = system_text(request.messages)
    body: dict[str, Any] = {
        "messages": [
            *_with_changes_apart(
                alternating(
                    turns,
                    answer=_answer,
                    result=lambda message: _result(message, request),
                    part=lambda part: _with_mark(_block(part, request), marks.get(id(part))),
                    mark=lambda turn, blocks: blocks.extend(
                        [*_marks(cache_mark(request, turn)), *_changes(turn, request)]
                    ),
                )
            )
        ]
    }
    if system:
        texts = [*system] if not request.cache_marks else []
        marked_texts = system_texts(request, CONVERSE) if request.cache_marks else []
        body["system"] = [
            *({"text": text} for text in texts),
            *chain(*(_with_mark({"text": text}, mark) for text, mark in marked_texts)),
        ]
    put_options(body, request, CONVERSE, drops, but=["tool_choice", "reasoning_effort"])
    tool_config = _tools(request, turns, drops)
    if tool_config:
        body["toolConfig"] = tool_config
    output_config = _output(request, drops)
    if output_config:
        body["outputConfig"] = output_config
    method = "converse-stream" if request.stream else "converse"
    path = f"/model/{quote(request.model or '', safe='')}/{method}"
    return HTTPRequest(path, body, adaptations=(*drops.found(), *_uncited(request)), table=CONVERSE)


def _uncited(request: ChatRequest) -> Iterator[Adaptation]:
    """The lost citations of text documents. Without a text next to them, these documents go out as text."""
    for number, turn in enumerate(request.messages):
        for part_number, part in enumerate(content_parts(message_of(turn))):
            if isinstance(part, DocumentPart) and part.citations and _is_alone(part, request):
                part_details = request.details_of_part(part) or {}
                path = part_details.get("at", f"messages[{number}].content[{part_number}]")
                yield Adaptation(path, AdaptationKind.TOLD, "it is sent as text")
                reason = "only a document beside a text is cited"
                yield Adaptation.dropped(f"{path}.citations", reason, asked=True, refuses=True)


def _tools(request: ChatRequest, turns: list[Turn], drops: Drops) -> dict[str, Any]:
    specs: list[dict[str, Any]] = []
    for tool in request.tools:
        specs.append(details_of(tool, CONVERSE, "toolConfig.tools[].toolSpec", "tool"))
    if not specs:  # a conversation with calls is refused where no tool is declared
        names = dict.fromkeys(tool_names(turns).values())
        specs = [{"name": name, "inputSchema": {"json": {"type": "object"}}} for name in names]
    tools: list[dict[str, Any]] = [{"toolSpec": spec} for spec in specs]
    if not tools:
        tools = [{"systemTool": {"name": name}} for name in dict.fromkeys(_server_tools(turns))]
    config: dict[str, Any] = {}
    if tools:
        config["tools"] = [*tools, *_marks(cache_mark(request, "tools"))]
    choice = request.tool_choice
    if choice is ToolChoice.NONE and request.tools:
        drops.add("tool_choice", "calls cannot be forbidden")
    elif isinstance(choice, NamedTool):
        config["toolChoice"] = {"tool": {"name": choice.name}}
    elif choice is not None and request.tools:
        config["toolChoice"] = {words_of("tool_choice", CONVERSE)[choice]: {}}
    return config


def _server_tools(turns: Iterable[Turn]) -> Iterator[str]:
    """The names of Bedrock's own tools that were called in *turns*."""
    for turn in turns:
        for segment in turn.segments if isinstance(turn, ChatResponse) else ():
            if _is_server_call(segment.metadata) and segment.metadata.get("name"):
                yield str(segment.metadata["name"])


def _is_server_call(metadata: Mapping[str, Any]) -> bool:
    return str(metadata.get("type")).endswith("server_tool_use")


def _marks(mark: CacheMark | None) -> list[dict[str, Any]]:
    """The block that *mark* is."""
    if mark is None:
        return []
    return [written_mark(mark, CONVERSE)]


def _changes(turn: Turn, request: ChatRequest) -> list[dict[str, Any]]:
    """The blocks that add or remove tools behind *turn*, in place of the system message that holds them."""
    blocks: list[dict[str, Any]] = []
    for part in content_parts(message_of(turn)):
        for change in (request.details_of_part(part) or {}).get("tool_changes", ()):
            tool = _reference(change["tool"])
            blocks += [{_CHANGE_BLOCKS[change["type"]]: {"tool": tool}}, *_marks(change["mark"])]
    return [{_SYSTEM_KEY: blocks}] if blocks else []


def _with_changes_apart(turns: Iterable[tuple[bool, list[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """The messages of *turns*. The system changes the tools behind a message of the user, and not inside."""
    for is_answer, blocks in turns:
        other_blocks = [block for block in blocks if _SYSTEM_KEY not in block]
        yield {"role": "assistant" if is_answer else "user", "content": other_blocks}
        if changes := [*chain(*(block.get(_SYSTEM_KEY, ()) for block in blocks))]:
            yield {"role": "system", "content": changes}


def _with_mark(block: dict[str, Any] | None, mark: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [*filter(None, (block, mark))]


def _output(request: ChatRequest, drops: Drops) -> dict[str, Any]:
    config: dict[str, Any] = {}
    response_format = request.response_format
    if response_format is not None and response_format.schema is None:
        drops.add("response_format", "JSON needs a schema here")
    elif response_format is not None and response_format.schema is not None:
        schema = details_of(
            response_format, CONVERSE, "outputConfig.textFormat.structure.jsonSchema", "format"
        )
        schema["schema"] = dump_json(schema["schema"]).decode()
        config["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": schema}}
    if effort := word_of("reasoning_effort", request.reasoning_effort, CONVERSE, drops):
        config["effort"] = effort
    return config


def _result(message: ChatMessage, request: ChatRequest) -> dict[str, Any]:
    content = [*filter(None, (_block(part, request) for part in content_parts(message)))]
    status_field = {} if message.is_error is None else {"status": "error" if message.is_error else "success"}
    return {"toolResult": {"toolUseId": message.tool_call_id, "content": content, **status_field}}


def _block(part: ContentPart, request: ChatRequest) -> dict[str, Any] | None:
    """The block of *part*, with what a client has said of it, or ``None`` if it would be refused.

    Only some models take results of searches and documents of text, and cite them. As text, all others take them, too.
    """
    citations_flag = getattr(part, "citations", None)
    citations_field = {} if citations_flag is None else {"citations": {"enabled": citations_flag}}
    if isinstance(part, SearchResultPart) and citations_flag:
        content = [{"text": text} for text in part.content]
        return {
            "searchResult": {
                "source": part.source,
                "title": part.title,
                "content": content,
                **citations_field,
            }
        }
    if isinstance(part, DocumentPart) and citations_flag and not _is_alone(part, request):
        context_field = {"context": part.context} if part.context else {}
        text_blocks = [{"text": text} for text in part.content]
        source: dict[str, Any] = text_blocks[0] if len(text_blocks) == 1 else {"content": text_blocks}
        document = {"format": "txt", "name": _name(part.title), "source": source}
        return {"document": {**document, **context_field, **citations_field}}
    return _plain_block(part, citations_field)


def _is_alone(document: ContentPart, request: ChatRequest) -> bool:
    """Whether *document* is in a message of the user without a text, which is refused."""
    for turn in request.messages:
        parts = content_parts(message_of(turn))
        if any(part is document for part in parts) and message_of(turn).role is Role.USER:
            return not any(type(part) is TextPart for part in parts)
    return False


def _name(name: str | None) -> str:
    """Return *name* in the characters that a document's name may have."""
    return (_NON_NAME_PATTERN.sub(" ", name or "").strip() or "file")[:200]


def _plain_block(part: ContentPart, citations_field: dict[str, Any]) -> dict[str, Any] | None:
    if isinstance(part, TextPart):
        return {"text": part.text} if part.text.strip() else None
    if part.data is not None:
        source: dict[str, Any] = {"bytes": part.data}
    elif part.url is not None and part.url.startswith("s3://"):
        source = {"s3Location": {"uri": part.url}}
    else:
        raise unsupported_part(part, "must be given as data, or lie in S3")
    media_type = media_type_of(part)
    subtype = media_type.partition("/")[2].removeprefix("x-")
    if isinstance(part, ImagePart) and subtype in _IMAGE_FORMATS:
        return {"image": {"format": subtype, "source": source}}
    if isinstance(part, AudioPart):
        return {"audio": {"format": {"wave": "wav"}.get(subtype, subtype), "source": source}}
    if isinstance(part, VideoPart):
        return {"video": {"format": _VIDEO_FORMATS.get(subtype, subtype), "source": source}}
    format = _FORMATS.get(media_type)
    if format is None and isinstance(part, FilePart) and text_in(part) is not None:
        format = "txt"
    if format is None or isinstance(part, ImagePart):
        raise unsupported_part(part, f"of type {media_type[:60]} cannot be sent to this API")
    context_field = {"context": part.context} if part.context else {}
    return {
        "document": {
            "format": format,
            "name": _name(part.name),
            "source": source,
            **context_field,
            **citations_field,
        }
    }


_BLOCK_KEYS = frozenset(
    (
        *("text", "toolUse", "toolResult", "reasoningContent", "citationsContent", "guardContent"),
        *("image", "audio", "video", "document"),
    )
)
"""The known members of a block. A block without any of them is new."""


def _answer(turn: Turn) -> list[dict[str, Any]]:
    """The blocks of a model's *turn*, each with the state that came with it."""
    blocks: list[dict[str, Any] | None] = []
    citations: list[dict[str, Any]] = []
    for segment in segments_of(turn):
        if segment.type is SegmentType.CITATION:
            citations.append(segment.metadata.thawed())
        elif citations and segment.type is SegmentType.TEXT:
            citations_content = {"content": [{"text": segment.content}], "citations": citations}
            blocks.append({"citationsContent": citations_content})
            citations = []
        else:
            blocks.append(_answer_block(segment))
    return own_items(turn, blocks, inside="content", kinds=_BLOCK_KEYS)


def _answer_block(segment: Segment) -> dict[str, Any] | None:
    """Return the block of *segment*, or ``None`` if it is not sent."""
    metadata = segment.metadata.thawed()
    match segment.type:
        case SegmentType.TEXT | SegmentType.REFUSAL if segment.content.strip():
            return {"text": segment.content}
        case SegmentType.REASONING if "encrypted" in metadata:
            return {"reasoningContent": {"redactedContent": metadata["encrypted"]}}
        case SegmentType.REASONING:
            signature_field = {"signature": metadata["signature"]} if "signature" in metadata else {}
            return {"reasoningContent": {"reasoningText": {"text": segment.content, **signature_field}}}
        case SegmentType.TOOL_CALL if _is_server_call(metadata):
            input_object = as_json_object(segment.content) or {}
            return {"toolUse": {"toolUseId": metadata.pop("id", ""), **metadata, "input": input_object}}
        case SegmentType.TOOL_CALL if "type" in metadata:
            if metadata["type"] == "tool_result":
                del metadata["type"]
            return {"toolResult": {"toolUseId": metadata.pop("id", ""), **metadata}}
        case SegmentType.TOOL_CALL if "name" in metadata:
            call = ToolCall(metadata["id"], metadata["name"], segment.content)
            return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments_object(call)}}
    return None
