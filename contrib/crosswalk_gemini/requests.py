"""Requests to Gemini's ``generateContent`` and ``streamGenerateContent``.

Facts: Google's reference of ``models.generateContent``; provider document "Google Gemini".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from crosswalk.plugins import (
    ChatMessage,
    ChatRequest,
    ContentPart,
    Drops,
    FilePart,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    Segment,
    SegmentType,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    Turn,
    UnsupportedRequestError,
    alternating,
    arguments_object,
    as_json_object,
    content_parts,
    details_of,
    gemini as wire,
    hosted_fields,
    media_type_of,
    own_items,
    put_options,
    schema_of,
    segments_of,
    signs_calls,
    system_text,
    tool_names,
    word_of,
    words_of,
)
from crosswalk_gemini import MODEL_CLASSES


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for the Gemini API.

    Raises:
        UnsupportedRequestError: a part with an unknown media type, an invalid model's name, or anything but text for the
            system.
    """
    drops = Drops(request)
    system, turns = system_text(request.messages)
    names = tool_names(turns)
    contents = alternating(
        turns,
        answer=_answer,
        result=lambda message: _tool_result(message, names),
        part=_part,
    )
    if signs_calls(MODEL_CLASSES, request.model or ""):
        _add_placeholders(contents)
    body: dict[str, Any] = {
        "contents": [
            {"role": "model" if is_answer else "user", "parts": parts} for is_answer, parts in contents
        ]
    }
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    tools: list[dict[str, Any]] = []
    if request.tools:
        tools.append({"functionDeclarations": [_tool(tool) for tool in request.tools]})
    for hosted_tool in request.hosted_tools:
        tools.append(hosted_fields(hosted_tool, "gemini", drops))
    if tools:
        body["tools"] = tools
    if request.tool_choice is not None:
        body["toolConfig"] = {"functionCallingConfig": _mode(request.tool_choice)}
    put_options(body, request, "gemini", drops)
    if config := _config(request, drops):
        body["generationConfig"] = {**body.get("generationConfig", {}), **config}
    method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return HTTPRequest(f"/v1beta/{_model(request.model or '')}:{method}", body, adaptations=drops.found())


_PLACEHOLDER = "skip_thought_signature_validator"
"""The signature that Google documents for a call that no such model made ("Thought Signatures", FAQ)."""


def _add_placeholders(contents: list[tuple[bool, list[dict[str, Any]]]]) -> None:
    """Sign the first call of each step of the current turn where it has no signature."""
    user_numbers = [
        number
        for number, (is_answer, parts) in enumerate(contents)
        if not is_answer and any("functionResponse" not in part for part in parts)
    ]
    for _, parts in contents[
        max(user_numbers, default=0) :
    ]:  # the current turn begins where the user spoke last
        first_call = next((part for part in parts if "functionCall" in part), None)
        if first_call is not None:
            first_call.setdefault("thoughtSignature", _PLACEHOLDER)


def _model(name: str) -> str:
    """*name* as a part of the path. Tuned models have a separate folder."""
    segments = name.split("/") if "/" in name else ["models", name]
    if any(segment in ("", ".", "..") for segment in segments):
        raise UnsupportedRequestError("invalid model name", options=["model"])
    return "/".join(quote(segment, safe="") for segment in segments)


def _config(request: ChatRequest, drops: Drops) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.response_format is not None:
        config["responseMimeType"] = "application/json"
        if request.response_format.schema is not None:
            config["responseJsonSchema"] = schema_of(request.response_format)
    effort = request.reasoning_effort
    if effort is ReasoningEffort.NONE:
        config["thinkingConfig"] = {"thinkingBudget": 0}
    elif level := word_of("reasoning_effort", effort, "gemini", drops):
        config["thinkingConfig"] = {"thinkingLevel": level, "includeThoughts": True}
    return config


_MEANINGLESS_KEYWORDS = ("type", "title", "$schema")
"""Keywords of a schema that say nothing of the arguments: a tool that has no others takes none."""


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    declaration = details_of(tool, "gemini", "tools[].functionDeclarations[]", "tool")
    if not any(value and word not in _MEANINGLESS_KEYWORDS for word, value in tool.parameters.items()):
        del declaration["parametersJsonSchema"]
    return declaration


def _mode(choice: ToolChoice | NamedTool) -> dict[str, Any]:
    if isinstance(choice, NamedTool):
        return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    return {"mode": words_of("tool_choice", "gemini")[choice]}


def _tool_result(message: ChatMessage, names: Mapping[str, str]) -> dict[str, Any]:
    id = message.tool_call_id or ""
    name = message.name or names.get(id)
    if name is None:
        raise UnsupportedRequestError("a tool's result must name its tool", options=["messages"])
    result_object = as_json_object(message.text)
    response = {"error": message.text} if message.is_error else result_object or {"result": message.text}
    function_response = {"id": id, "name": name, "response": response}
    parts = [_part(part) for part in content_parts(message) if not isinstance(part, TextPart)]
    if any("fileData" in part for part in parts):
        raise UnsupportedRequestError("a tool's result must be given as data", options=["messages"])
    return {"functionResponse": {**function_response, **({"parts": parts} if parts else {})}}


def _part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"text": part.text}
    name_field = {"displayName": part.name} if isinstance(part, FilePart) and part.name else {}
    if part.url is not None:
        media_type_field = {"mimeType": part.media_type} if part.media_type else {}
        return {"fileData": {"fileUri": part.url, **media_type_field, **name_field}}
    return {"inlineData": {"mimeType": media_type_of(part), "data": part.data, **name_field}}


def _answer(turn: Turn) -> list[dict[str, Any]]:
    """The parts of a model's *turn*, each with the signature and the state that came with it."""
    parts = [_answer_part(segment) for segment in segments_of(turn)]
    return own_items(turn, parts, inside="parts", kinds=wire.PARTS)


def _answer_part(segment: Segment) -> dict[str, Any] | None:
    """The part that *segment* is; ``None`` for one that is not sent."""
    metadata = segment.metadata.thawed()
    if segment.type is SegmentType.TOOL_CALL and "type" not in metadata and "name" in metadata:
        call = ToolCall(metadata["id"], metadata["name"], segment.content)
        signature_field = {"thoughtSignature": metadata["signature"]} if "signature" in metadata else {}
        function_call = {"id": call.id, "name": call.name, "args": arguments_object(call)}
        return {"functionCall": function_call, **signature_field}
    is_empty = segment.type is SegmentType.TEXT and not (segment.content or "signature" in metadata)
    return None if is_empty else wire.part_of(segment.type, segment.content, metadata)
