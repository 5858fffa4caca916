"""Requests to Anthropic's ``/v1/messages``.

Facts: Anthropic's reference of "Create a Message"; provider document "Anthropic Messages".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any

import attrs

from crosswalk.plugins import (
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
    ReasoningEffort,
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
    cache_mark,
    client_tool_item,
    content_parts,
    details_of,
    hosted_fields,
    is_of,
    media_type_of,
    messages,
    own_items,
    part_marks,
    put_options,
    schema_of,
    segments_of,
    system_text,
    system_texts,
    text_in,
    unsupported_part,
    word_of,
    words_of,
    written_mark,
)

DEFAULT_MAX_TOKENS = 16384
"""The ``max_tokens`` for requests without it to a model of an unknown name. The API has no default."""

_BETA_VERSIONS = {"mcp_servers": "mcp-client-2025-04-04", "compaction": "compact-2026-01-12"}
"""The beta that must be named in a header with an option, in the version in which the option is written."""
_TOOLSET_BETA_VERSIONS = {**_BETA_VERSIONS, "mcp_servers": "mcp-client-2025-11-20"}
"""The same for a request with the toolset of an MCP server, which the older version does not know."""
_LEAST_VALUES = {"temperature": 1, "top_p": 0.95, "top_k": math.inf}
"""The least value of each sampling option that the API takes while the model thinks."""
_LEAST_BUDGET = 1024
"""The least number of tokens of thought that may be asked for. It must be below ``max_tokens``."""
_NO_THOUGHT_EFFORTS = (None, ReasoningEffort.NONE)
_FREE_CHOICES = (None, ToolChoice.AUTO, ToolChoice.NONE)
_TEXT_TYPES = (SegmentType.TEXT, SegmentType.REFUSAL, SegmentType.CITATION)


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for the Messages API.

    Raises:
        UnsupportedRequestError: a message holds a sound, or anything but text for the system.
    """
    drops = Drops(request)
    budget = _budget(request, drops)
    default_max_tokens = DEFAULT_MAX_TOKENS + (budget or _own_budget(request))  # thoughts count
    marks = part_marks(request, "messages")
    _, turns = system_text(request.messages)
    system = system_texts(request, "messages")
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or default_max_tokens,
        "messages": [
            {"role": "assistant" if is_answer else "user", "content": blocks}
            for is_answer, blocks in alternating(
                turns,
                answer=partial(_answer_blocks, request, drops),
                result=lambda message: _tool_result(message, marks),
                part=lambda part: _block(part, marks),
                mark=lambda turn, blocks: _mark(blocks, cache_mark(request, turn)),
            )
        ],
    }
    if system:
        body["system"] = [{"type": "text", "text": text, **mark} for text, mark in system]
        if system == [(system[0][0], {})]:
            body["system"] = system[0][0]
    cause = "reasoning_effort" if budget is None else "thinking_budget"
    thinks = budget is not None or request.reasoning_effort not in _NO_THOUGHT_EFFORTS
    refused_options = [
        name
        for name, least_value in _LEAST_VALUES.items()
        if thinks and (getattr(request, name) or 0) < least_value
    ]
    drops.given(request, *refused_options, reason=f"not with {cause}")
    put_options(body, request, "messages", drops, but=[*refused_options, "parallel_tool_calls"])
    tools = [
        client_tool_item(tool, "messages") or details_of(tool, "messages", "tools[][custom]", "tool")
        for tool in request.tools
    ]
    tools += [hosted_fields(tool, "messages", drops) for tool in request.hosted_tools]
    if tools:
        _mark(tools, cache_mark(request, "tools"))
        body["tools"] = tools
        if thinks and request.tool_choice not in _FREE_CHOICES:
            drops.add("tool_choice", f"no call can be forced with {cause}")
            request = attrs.evolve(request, tool_choice=None)
        choice = _tool_choice(request)
        if choice is not None:
            body["tool_choice"] = choice
    _add_output(body, request, drops)
    if budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if container := _container(request, drops):
        body["container"] = container
    if request.stream:
        body["stream"] = True
    headers = {"anthropic-version": "2023-06-01"}
    versions = _TOOLSET_BETA_VERSIONS if _has_toolset(request) else _BETA_VERSIONS
    if betas := [beta for name, beta in versions.items() if name in request.extra_options]:
        headers["anthropic-beta"] = ",".join(betas)
    if not request.max_tokens:
        drops.default("max_tokens", default_max_tokens, "the API needs it")
    return HTTPRequest("/v1/messages", body, headers=headers, adaptations=drops.found())


def _has_toolset(request: ChatRequest) -> bool:
    """Whether a client of the API, or the ``provider_options``, say which tools of an MCP server there are."""
    own_options: Mapping[str, Any] = request.provider_options.get(request.provider or "", {})
    own_tools = own_options.get("tools", ())
    types = [tool.get("type") for tool in own_tools if isinstance(tool, Mapping)]
    return len(request.names_of("mcp_toolset")) > 1 or "mcp_toolset" in types


def _budget(request: ChatRequest, drops: Drops) -> int | None:
    """The tokens of thought that *request* asks for, within the bounds of the API, or ``None`` for no budget."""
    name = "thinking_budget"
    asked_budget = request.extra_options.get(name)
    if asked_budget is None:
        return None
    largest_budget = math.inf if request.max_tokens is None else request.max_tokens - 1
    if type(asked_budget) is not int:
        drops.add(name, "it must be a whole number")
    elif request.reasoning_effort is ReasoningEffort.NONE:
        drops.add(name, "reasoning_effort is none")
    elif largest_budget < _LEAST_BUDGET:
        drops.add(name, f"it must be at least {_LEAST_BUDGET} and below max_tokens")
    else:
        budget = int(min(max(asked_budget, _LEAST_BUDGET), largest_budget))
        if budget != asked_budget:
            drops.clamp(name, budget, f"it must be at least {_LEAST_BUDGET} and below max_tokens")
        return budget
    return None


def _own_budget(request: ChatRequest) -> int:
    """The budget in the ``provider_options`` of *request*, or 0."""
    own_options: Mapping[str, Any] = request.provider_options.get(request.provider or "", {})
    thinking = own_options.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return budget if type(budget) is int and budget > 0 else 0


def _add_output(body: dict[str, Any], request: ChatRequest, drops: Drops) -> None:
    """How the answer is to be: its format, and how much thought goes into it."""
    config: dict[str, Any] = {}
    if request.response_format is not None:
        if request.response_format.schema is None:
            drops.add("response_format", "JSON needs a schema here")
        else:
            config["format"] = {"type": "json_schema", "schema": schema_of(request.response_format)}
    if request.reasoning_effort is ReasoningEffort.NONE:
        body["thinking"] = {"type": "disabled"}
    elif effort := word_of("reasoning_effort", request.reasoning_effort, "messages", drops):
        body["thinking"] = {"type": "adaptive"}
        config["effort"] = effort
    if config:
        body["output_config"] = config


def _container(request: ChatRequest, drops: Drops) -> str | None:
    """The container that the last answer with one ran code in, unless it has expired or the caller names another."""
    own_options: Mapping[str, Any] = request.provider_options.get(request.provider or "", {})
    if "container" in own_options or "container" in request.extra_options:
        return None
    for number in reversed(range(len(request.messages))):
        turn = request.messages[number]
        if not isinstance(turn, ChatResponse):
            continue
        container = turn.metadata.extensions.get("container")
        if isinstance(container, Mapping) and isinstance(container.get("id"), str) and is_of(turn, request):
            if _lasts(container.get("expires_at")):
                return str(container["id"])
            drops.leave(number, "the container has expired")
            return None
    return None


def _lasts(expires_at: object) -> bool:
    """Whether a time is still to come; an unknown one is."""
    try:
        end = datetime.fromisoformat(str(expires_at))
    except ValueError:
        return True
    return end.replace(tzinfo=end.tzinfo or UTC) > datetime.now(UTC)


def _mark(blocks: list[dict[str, Any]], mark: CacheMark | None) -> None:
    """Mark the last of *blocks* that may be, for the cache."""
    block = next((block for block in reversed(blocks) if block.get("type") not in messages.UNMARKED), None)
    if mark is not None and block is not None:
        block |= written_mark(mark, "messages")


def _tool_choice(request: ChatRequest) -> dict[str, Any] | None:
    choice: dict[str, Any] | None = None
    if isinstance(request.tool_choice, NamedTool):
        choice = {"type": "tool", "name": request.tool_choice.name}
    elif request.tool_choice is not None:
        choice = {"type": words_of("tool_choice", "messages")[request.tool_choice]}
    if request.parallel_tool_calls is not None and request.tool_choice is not ToolChoice.NONE:
        choice = {
            **(choice or {"type": "auto"}),
            "disable_parallel_tool_use": not request.parallel_tool_calls,
        }
    return choice


def _tool_result(message: ChatMessage, marks: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    content: Any = message.content
    if not isinstance(content, str):
        content = [*filter(None, (_block(part, marks) for part in content_parts(message)))]
    error_field = {} if message.is_error is None else {"is_error": message.is_error}
    return {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content, **error_field}


def _block(part: ContentPart, marks: Mapping[int, dict[str, Any]]) -> dict[str, Any] | None:
    block = _plain_block(part)
    return None if block is None else {**block, **marks.get(id(part), {})}


_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_DOCUMENT_TYPE = "application/pdf"
"""The media that the API takes beside text: those of ``Base64ImageSource`` and ``Base64PDFSource`` in Anthropic's SDK."""


def _plain_block(part: ContentPart) -> dict[str, Any] | None:
    citations_flag = getattr(part, "citations", None)
    citations_field = {} if citations_flag is None else {"citations": {"enabled": citations_flag}}
    if isinstance(part, SearchResultPart):
        content = [{"type": "text", "text": text} for text in part.content]
        return {
            "type": "search_result",
            "source": part.source,
            "title": part.title,
            "content": content,
            **citations_field,
        }
    if isinstance(part, DocumentPart):
        pieces: Any = [{"type": "text", "text": text} for text in part.content]
        source: dict[str, Any] = {"type": "content", "content": pieces}
        if len(part.content) == 1:
            source = {"type": "text", "media_type": "text/plain", "data": part.content[0]}
        text_fields = {"title": part.title, "context": part.context}
        return {
            "type": "document",
            "source": source,
            **{k: v for k, v in text_fields.items() if v},
            **citations_field,
        }
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, AudioPart | VideoPart):
        raise unsupported_part(part, "cannot be sent to this API")
    is_image, media_type = isinstance(part, ImagePart), part.media_type
    source = {"type": "url", "url": part.url}
    if part.url is None:
        media_type = media_type_of(part)
        source = {"type": "base64", "media_type": media_type, "data": part.data}
    if isinstance(part, FilePart) and (text := text_in(part)) is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif media_type in _IMAGE_TYPES:
        is_image = True
    elif media_type not in (None, _DOCUMENT_TYPE) and not (is_image and part.url):
        raise unsupported_part(part, f"of type {media_type:.60} cannot be sent to this API")
    if is_image:
        return {"type": "image", "source": source}
    fields = {"title": part.name, "context": part.context} if isinstance(part, FilePart) else {}
    text_fields = {name: text for name, text in fields.items() if text}
    return {"type": "document", "source": source, **text_fields, **citations_field}


# An answer of the model as it goes back: the blocks that it was made of.


def _answer_blocks(request: ChatRequest, drops: Drops, turn: Turn) -> list[dict[str, Any]]:
    """The blocks of a model's *turn*, each with the state that came with it."""
    blocks: list[dict[str, Any] | None] = []
    for is_text, run in groupby(segments_of(turn), lambda segment: segment.type in _TEXT_TYPES):
        if is_text:
            blocks += _texts(run)
        else:
            blocks += map(_answer_block, run)
    if searches := messages.foreign_searches(blocks):
        drops.leave(request.messages.index(turn), "a web search of another server")
        blocks = [None if place in searches else block for place, block in enumerate(blocks)]
    return own_items(turn, [messages.without_foreign_citations(block) for block in blocks])


def _answer_block(segment: Segment) -> dict[str, Any] | None:
    """The block of a *segment* that is no text; ``None`` where there is none to send."""
    metadata = segment.metadata.thawed()
    match segment.type:
        case SegmentType.REASONING if "encrypted" in metadata:
            return {"type": "redacted_thinking", "data": metadata["encrypted"]}
        case SegmentType.REASONING:
            signature_field = {"signature": metadata["signature"]} if "signature" in metadata else {}
            return {"type": "thinking", "thinking": segment.content, **signature_field}
        case SegmentType.MEDIA:  # a file of its own, by id
            return metadata
        case SegmentType.TOOL_CALL if str(metadata.get("type")).endswith("_tool_result"):
            return metadata
        case SegmentType.TOOL_CALL if "type" in metadata:
            return {**metadata, "input": as_json_object(segment.content) or {}}
        case SegmentType.TOOL_CALL if "name" in metadata:
            call = ToolCall(metadata["id"], metadata["name"], segment.content)
            return {**metadata, "type": "tool_use", "input": arguments_object(call)}
    return None


def _texts(run: Iterable[Segment]) -> Iterator[dict[str, Any] | None]:
    """The text blocks of a *run* of texts and citations: what is cited comes before its text, unless that says it follows.

    A block of white space alone, which the API writes and refuses, goes with the one before it: ``None`` keeps its place.
    """
    waiting_citations: list[dict[str, Any]] = []
    block: dict[str, Any] | None = None
    citations_follow = False
    for segment in run:
        if segment.type is SegmentType.CITATION:
            if "type" in segment.metadata:
                citation = {**segment.metadata.thawed(), "cited_text": segment.content}
                (
                    block.setdefault("citations", []) if block and citations_follow else waiting_citations
                ).append(citation)
        elif segment.content.strip() or (segment.content and waiting_citations):
            block = {"type": "text", "text": segment.content}
            if waiting_citations:
                block["citations"], waiting_citations = waiting_citations, []
            citations_follow = segment.metadata.get("citations") == "follow"
            yield block
        else:
            if block:
                block["text"] += segment.content
            yield None
    if block and waiting_citations:
        block["citations"] = [*block.get("citations", ()), *waiting_citations]
