"""The requests of services that differ from OpenAI's: reasoning, cache marks, and the order of messages.

Facts: each provider's reference of its chat endpoint; provider document "OpenAI Chat Completions", section 9; for
Mistral's parts the types of the package mistralai 3.7.0, and for its order the validator of requests in ``mistral_common``
and the error 3230 of its API; for Perplexity's its error
400, perplexityai/api-discussion 265.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.plugins import (
    Adaptation,
    AdaptationKind,
    AudioPart,
    ChatRequest,
    ChatResponse,
    ContentPart,
    FilePart,
    HTTPRequest,
    RequestRow,
    Segment,
    SegmentType,
    Turn,
    below,
    data_url,
    own_fields,
    own_items,
)

MISTRALS_ROWS = (
    RequestRow("service_tier", "service_tier", words={"auto": "auto", "default": "standard_only"}),
    *map(
        RequestRow,
        ("min_tokens", "prompt_logprobs", "top_prompt_logprobs", "prompt_mode", "guardrails", "safe_prompt"),
    ),
    *below(
        "messages[].content[]",
        RequestRow("[input_audio].input_audio", "part.audio"),
        RequestRow("[document_url].document_url", "part.file"),
        RequestRow("[document_url].document_name", "part.name"),
        RequestRow("[file].file_id", "part.file_id"),
    ),
)
"""The options and parts of Mistral's API that no other one has, or not in these words."""

OPENROUTERS_ROWS = (
    RequestRow("reasoning.max_tokens", "thinking_budget", replaces="reasoning_effort"),
    *below(
        "messages[].content[][text]",
        RequestRow("cache_control", "cache.mark", write=lambda mark: {"type": "ephemeral", **mark}),
        RequestRow("cache_control.ttl", "cache.ttl"),
    ),
    RequestRow("messages[].content[][video_url].video_url.url", "part.video"),
    *below(
        "messages[].content[][file].file",
        RequestRow("file_data", "part.file"),
        RequestRow("file_id", "part.file_id"),
        RequestRow("filename", "part.name"),
    ),
)
"""OpenRouter takes cache marks on parts, videos, files and budgets, and passes them on to providers that have them."""

PERPLEXITYS_ROWS = below(
    "messages[].content[][file_url]",
    RequestRow("file_url.url", "part.file"),
    RequestRow("file_name", "part.name"),
)
"""The parts of Perplexity's API that no other one has (the types of the package perplexityai 0.46.1)."""


def perplexitys_part(part: ContentPart) -> dict[str, Any] | None:
    """Return a file as Perplexity's API has it: at its URL, or as base64 without the head of a URL."""
    if not isinstance(part, FilePart) or part.id is not None:
        return None
    name = {"file_name": part.name} if part.name else {}
    return {"type": "file_url", "file_url": {"url": part.data or part.url}, **name}


def mistrals_part(part: ContentPart) -> dict[str, Any] | None:
    """Return a sound or a file as a chunk of Mistral's."""
    if isinstance(part, AudioPart):
        return {"type": "input_audio", "input_audio": part.data or part.url}
    if isinstance(part, FilePart) and part.id is not None:
        return {"type": "file", "file_id": part.id}
    if isinstance(part, FilePart):
        name = {"document_name": part.name} if part.name else {}
        return {"type": "document_url", "document_url": data_url(part), **name}
    return None


def add_chunks(turn: Turn, request: ChatRequest, wire_message: dict[str, Any]) -> None:
    """Add Mistral's content in chunks, if it is more than text."""
    if wire_message["role"] != "assistant" or not isinstance(turn, ChatResponse):
        return
    chunks = own_items(turn, [_chunk(segment) for segment in turn.segments], inside="content")
    if any(chunk["type"] != "text" for chunk in chunks):
        wire_message["content"] = chunks


def _chunk(segment: Segment) -> dict[str, Any] | None:
    metadata = segment.metadata.thawed()
    match segment.type:
        case SegmentType.TEXT | SegmentType.REFUSAL if segment.content:
            return {"type": "text", "text": segment.content}
        case SegmentType.REASONING:
            return {"type": "thinking", "thinking": [{"type": "text", "text": segment.content}], **metadata}
        case SegmentType.CITATION if "reference_ids" in metadata:
            return {"type": "reference", **metadata}
    return None


def add_details(turn: Turn, request: ChatRequest, wire_message: dict[str, Any]) -> None:
    """Add the reasoning details that OpenRouter expects, each with its signature."""
    if isinstance(turn, ChatResponse):
        details = [*_details(turn)]
        if details:
            wire_message["reasoning_details"] = details


def _details(turn: ChatResponse) -> Iterator[dict[str, Any]]:
    """Return the reasoning details of *turn*, each with its state. Plain text without a detail is one more."""
    sent_details = own_fields(turn).get("reasoning_details")
    entries = (
        [entry for entry in sent_details if isinstance(entry, dict)] if isinstance(sent_details, list) else []
    )
    plain_entries = [entry for entry in entries if "type" in entry]
    for segment in turn.segments:
        if segment.type is not SegmentType.REASONING:
            continue
        metadata = segment.metadata.thawed()
        matching_entry = next(
            (entry for entry in entries if entry not in plain_entries and _is_same(entry, metadata)), {}
        )
        if "encrypted" in metadata:
            if segment.content:
                yield _plain_detail(segment.content, plain_entries.pop(0) if plain_entries else {})
            data = metadata.pop("encrypted")
            yield {**matching_entry, **metadata, "type": "reasoning.encrypted", "data": data}
        elif "signature" in metadata:
            yield {**matching_entry, **metadata, "type": "reasoning.text", "text": segment.content}
        else:
            yield _plain_detail(segment.content, plain_entries.pop(0) if plain_entries else {})


def _is_same(entry: dict[str, Any], metadata: dict[str, Any]) -> bool:
    """Return whether *entry* is the remainder of the detail in a segment's metadata *metadata*, by its number."""
    return "index" in entry and entry["index"] == metadata.get("index")


def _plain_detail(text: str, entry: dict[str, Any]) -> dict[str, Any]:
    name = "summary" if entry.get("type") == "reasoning.summary" else "text"
    return {"type": f"reasoning.{name}", **entry, name: text}


def continue_last_answer(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *messages* for Moonshot, which continues an answer at the end only if it is marked as partial."""
    if messages[-1]["role"] == "assistant":
        return [*messages[:-1], {**messages[-1], "partial": True}]
    return messages


def with_one_system_message(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *messages* for MiniMax, with all system messages as one message at the beginning."""
    system_messages, others = _system_first(messages)
    if not system_messages:
        return others
    content = system_messages[0]["content"]
    for system_message in system_messages[1:]:
        content = _joined(content, system_message["content"])
    return [{**system_messages[0], "content": content}, *others]


def in_mistrals_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *messages* for Mistral.

    System messages are only allowed at the beginning. A user message directly after tool results is refused ("Unexpected
    role 'user' after role 'tool'"), so a message of the model separates them. The model continues an answer at the end.
    """
    ordered_messages, others = _system_first(messages)
    for message in others:
        if ordered_messages and ordered_messages[-1]["role"] == "tool" and message["role"] == "user":
            ordered_messages.append(_BETWEEN_MESSAGE)
        ordered_messages.append(message)
    if ordered_messages[-1]["role"] == "assistant":
        ordered_messages[-1] = {**ordered_messages[-1], "prefix": True}
    return ordered_messages


def in_perplexitys_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *messages* for Perplexity: the system's, then the user's and the model's in turn, a user's at both ends.

    Consecutive messages of one role are joined. There are no tools, so calls and results become text.
    """
    ordered_messages, others = _system_first(messages)
    start = len(ordered_messages)
    for message in _told(others):
        if len(ordered_messages) == start and message["role"] == "assistant":
            ordered_messages.append(_BEGIN_MESSAGE)
        if len(ordered_messages) > start and ordered_messages[-1]["role"] == message["role"]:
            ordered_messages[-1] = {
                **ordered_messages[-1],
                "content": _joined(ordered_messages[-1]["content"], message["content"]),
            }
        else:
            ordered_messages.append(message)
    if len(ordered_messages) == start:
        ordered_messages.append(_BEGIN_MESSAGE)
    elif ordered_messages[-1]["role"] == "assistant":
        ordered_messages.append(_GO_ON_MESSAGE)
    return ordered_messages


def with_forced_sentences_named(http_request: HTTPRequest) -> HTTPRequest:
    """Return *http_request*, with the sentences named that the server's rules have put into the conversation."""
    forced_messages = (
        (_BETWEEN_MESSAGE, "the user cannot speak after a tool's result"),
        (_BEGIN_MESSAGE, "the user begins each conversation"),
        (_GO_ON_MESSAGE, "the user has the last word"),
    )
    adaptations = (
        Adaptation(f"messages[{number}].content", AdaptationKind.ADDED, reason, sent=message["content"])
        for number, message in enumerate(http_request.body["messages"])
        for forced_message, reason in forced_messages
        if message is forced_message
    )
    return http_request.adapted(*adaptations)


_BETWEEN_MESSAGE = {"role": "assistant", "content": "I have the results."}
_GO_ON_MESSAGE = {"role": "user", "content": "(Go on.)"}
_BEGIN_MESSAGE = {"role": "user", "content": "(The conversation begins.)"}


def _system_first(messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the messages of the system, and all others."""
    system_messages = [message for message in messages if message["role"] == "system"]
    return system_messages, [message for message in messages if message["role"] != "system"]


def _told(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return *messages* with calls as text of the model, and results as text of the user."""
    names: dict[str, str] = {}
    for message in messages:
        content = message["content"]
        if message["role"] == "tool":
            text = "".join(part["text"] for part in content) if isinstance(content, list) else content
            name = names.get(message["tool_call_id"], "a tool")  # the server may have the call
            yield {"role": "user", "content": f"(What {name} gave: {text or ''})"}
        elif "tool_calls" in message:
            for call in message["tool_calls"]:
                function = call["function"]
                names[call["id"]] = function["name"]
                content = _joined(content, f"(I call {function['name']} with {function['arguments']}.)")
            yield {"role": "assistant", "content": content}
        else:
            yield message


def _joined(one: Any, other: Any) -> Any:
    """Join two contents: texts with an empty line between them, else parts."""
    if not (one and other):
        return one or other
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    part_lists = [
        [{"type": "text", "text": content}] if isinstance(content, str) else content
        for content in (one, other)
    ]
    return [*part_lists[0], *part_lists[1]]
