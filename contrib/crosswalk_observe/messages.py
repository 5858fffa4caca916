"""The request in the words of OpenTelemetry's GenAI conventions, for every dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_SYSTEM: Final = ("system", "instructions", "systemInstruction", "system_instruction", "preamble")
_PROMPTS: Final = ("prompt", "inputs", "inputText", "message", "query")
_RESULTS: Final = ("tool_result", "toolResult", "function_call_output", "functionResponse", "tool")
_CALLS: Final = ("tool_use", "toolUse", "function_call", "functionCall", "function")
_TEXTS: Final = ("text", "input_text", "output_text")
_TAKEN: Final = frozenset(
    {
        *("text", "reasoning", "blob", "file", "uri", "tool_call", "tool_call_response"),
        *("server_tool_call", "server_tool_call_response", "compaction"),
    }
)
"""The types of parts that the conventions define."""


def input_messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the conversation in the JSON *body* of a request, without separate system instructions.

    Fields of a part without a word in the conventions are stored as sent.
    """
    results = []
    for name in ("chat_history", "messages", "contents", "input"):
        raw = body.get(name)
        if isinstance(raw, str):
            raw = [raw]
        if isinstance(raw, list):
            results += [_message(one) for one in raw]
    for name in _PROMPTS:
        raw = body.get(name)
        for one in raw if isinstance(raw, list) else [raw]:
            if isinstance(one, str):
                results.append(_message(one))
    return results


def system_instructions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the system instructions outside the conversation in the JSON *body* of a request."""
    return [part for name in _SYSTEM for part in _parts(body.get(name))]


def tool_definitions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools in the JSON *body* of a request. Tools that the provider runs keep all their fields."""
    config = body.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else body.get("tools")
    results = [_tool(each) for one in _objects(tools) for each in _declared(one)]
    return results + [_tool({"type": "function", **one}) for one in _objects(body.get("functions"))]


def _declared(tool: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Return the functions that *tool* declares, or *tool*."""
    for name in ("functionDeclarations", "function_declarations"):
        if isinstance(tool.get(name), list):
            return [{"type": "function", **one} for one in _objects(tool[name])]
    for name in ("function", "toolSpec"):
        if isinstance(tool.get(name), dict):
            return [{"type": "function", **tool[name]}]
    return [tool]


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    schema: Any = next(
        (
            tool[key]
            for key in ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
            if key in tool
        ),
        None,
    )
    if isinstance(schema, dict) and isinstance(schema.get("json"), dict):  # Bedrock's
        schema = schema["json"]
    kind = tool.get("type")
    if "name" in tool and (kind in (None, "function", "custom") or schema is not None):
        payload = {"type": "function", "name": str(tool["name"]), "description": tool.get("description")}
        return {**payload, "parameters": schema} if schema is not None else payload
    word = kind if isinstance(kind, str) else next(iter(tool), "tool")
    return {**tool, "type": word, "name": str(tool.get("name", word))}


def _message(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        return {"role": "user", "parts": [*_parts(said)]}
    kind = said.get("type")
    if "role" not in said and kind is not None:  # an item of a Responses request
        role = "tool" if kind in _RESULTS else "assistant"
        return {"role": role, "parts": [*_parts(said)]}
    role = str(said.get("role", "user")).lower()
    role = {"model": "assistant", "chatbot": "assistant", "developer": "system", "function": "tool"}.get(
        role, role
    )
    if role == "tool" and "content" in said:
        id = said.get("tool_call_id") or said.get("tool_name") or said.get("name")
        return {"role": role, "parts": [_result(id, said["content"])]}
    parts: list[dict[str, Any]] = []
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(said.get(name), str) and said[name]:
            parts.append({"type": "reasoning", "content": said[name]})
    for name in ("content", "parts", "message"):
        parts += _parts(said.get(name))
    parts += [{"type": "blob", "modality": "image", "content": one} for one in _texts(said.get("images"))]
    parts += [_part({"type": "function", **call}) for call in _objects(said.get("tool_calls"))]
    more = {"name": said["name"]} if isinstance(said.get("name"), str) else {}
    return {"role": role, "parts": parts, **more}


def _parts(said: Any) -> Iterator[dict[str, Any]]:
    if isinstance(said, dict) and isinstance(said.get("parts"), list):
        said = said["parts"]
    for one in said if isinstance(said, list) else [said]:
        if isinstance(one, str):
            yield {"type": "text", "content": one}
        elif isinstance(one, dict):
            yield _part(one)


def _part(said: dict[str, Any]) -> dict[str, Any]:
    kind = said.get("type")
    key = (
        kind if isinstance(kind, str) else next(iter(said), "unknown")
    )  # Gemini and Bedrock name a part by its key
    inner = said[key] if isinstance(said.get(key), dict) else said
    if isinstance(said.get("text"), str) and (key in _TEXTS or said.get("thought")):
        return {"type": "reasoning" if said.get("thought") else "text", "content": said["text"]}
    if key in ("thinking", "reasoning") and isinstance(said.get("thinking"), str):
        return {"type": "reasoning", "content": said["thinking"]}
    if key in _CALLS and isinstance(inner.get("name"), str):
        requested = next((inner[name] for name in ("arguments", "input", "args") if name in inner), None)
        id = next(
            (one[name] for one in (inner, said) for name in ("call_id", "id", "toolUseId") if name in one),
            None,
        )
        return {"type": "tool_call", "id": id, "name": inner["name"], "arguments": requested}
    if key in _RESULTS:
        names = ("tool_use_id", "call_id", "toolUseId", "id", "name")
        id = next((inner[name] for name in names if inner.get(name) is not None), None)
        return _result(id, next((inner[n] for n in ("content", "output", "response") if n in inner), None))
    if key in _TAKEN:
        return {"type": "unknown", "value": said}
    return _media(key, inner) or {**said, "type": key}


def _result(id: object, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": None if id is None else str(id), "response": response}


def _media(key: str, said: dict[str, Any]) -> dict[str, Any] | None:
    """Return the part for an image, a sound or a document, or ``None`` if *said* is not a known one."""
    url, source = said.get("image_url") or said.get("url"), said.get("source")
    if isinstance(url, str) and key in ("image_url", "input_image"):
        return {"type": "uri", "modality": "image", "uri": url}
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        modality = "image" if key == "image" else "document"
        return {
            "type": "blob",
            "modality": modality,
            "mime_type": source.get("media_type"),
            "content": source["data"],
        }
    for name, address in (("inlineData", "data"), ("fileData", "fileUri")):
        if key == name and isinstance(said.get(address), str):
            mime = said.get("mimeType")
            modality = str(mime).partition("/")[0]
            if address == "data":
                return {"type": "blob", "modality": modality, "mime_type": mime, "content": said["data"]}
            return {"type": "uri", "modality": modality, "mime_type": mime, "uri": said["fileUri"]}
    return None


def _objects(said: Any) -> list[dict[str, Any]]:
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []


def _texts(said: Any) -> list[str]:
    return [one for one in said if isinstance(one, str)] if isinstance(said, list) else []
