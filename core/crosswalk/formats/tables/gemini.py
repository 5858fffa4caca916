"""What clients of Gemini's ``generateContent`` may say. Each field has a proto name as well, at every depth.

Facts: Google's reference of ``models.generateContent`` and the types of its SDK; provider document "Google Gemini".
"""

from __future__ import annotations

from typing import Any, Final

from crosswalk.formats.tables.spellings import allowed_tools, placed
from crosswalk.wire.gemini import json_name
from crosswalk.wire.rows import RequestTable, Row, below, hint, link, meaning, state

_MODES: Final = {"auto": "VALIDATED", "required": "ANY"}
"""The words for a choice among named functions. With both, Gemini calls only these."""


def _read_allowed(calling: Any) -> dict[str, Any]:
    fields = {json_name(key): value for key, value in calling.items()}
    mode = {theirs: ours for ours, theirs in _MODES.items()}[fields["mode"]]
    return {
        "mode": mode,
        "tools": [{"type": "function", "name": name} for name in fields["allowedFunctionNames"]],
    }


def _write_allowed(value: Any) -> dict[str, Any]:
    wanted = allowed_tools(value)
    return {
        "mode": _MODES[wanted["mode"]],
        "allowedFunctionNames": [tool["name"] for tool in wanted["tools"]],
    }


_SERVERS: Final = below(
    "tools[].mcpServers[]",
    Row("name", "mcp.name"),
    *below(
        "streamableHttpTransport",
        Row("url", "mcp.url"),
        Row("headers", "mcp.headers"),
        Row("headers.Authorization", "mcp.authorization", write="Bearer {}".format),
        *meaning("sseReadTimeout", "timeout", "terminateOnClose"),
    ),
)


def _write_servers(servers: Any) -> list[dict[str, Any]]:
    return [placed(server, "mcp", _SERVERS, "tools[].mcpServers[]") for server in servers]


_TYPES: Final = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")


def json_schema(schema: Any) -> Any:
    """Return Google's *schema* as JSON Schema: types in lower case, ``nullable`` as one more type."""
    if isinstance(schema, list):
        return [json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    read: dict[str, Any] = {}
    for name, value in schema.items():
        key = json_name(name)
        if key == "properties" and isinstance(value, dict):
            read[key] = {name: json_schema(inner) for name, inner in value.items()}
        elif key in ("items", "anyOf"):
            read[key] = json_schema(value)
        elif key == "type" and value in _TYPES:
            read[key] = value.lower()
        else:
            read[key] = value
    if read.pop("nullable", False) is True and isinstance(read.get("type"), str):
        read["type"] = [read["type"], "null"]
    return read


_CONFIG: Final = (
    Row("temperature", "temperature"),
    Row("topP", "top_p"),
    Row("topK", "top_k"),
    Row("maxOutputTokens", "max_tokens"),
    Row("stopSequences", "stop"),
    Row("seed", "seed"),
    Row("frequencyPenalty", "frequency_penalty"),
    Row("presencePenalty", "presence_penalty"),
    Row("candidateCount", "n"),
    Row("responseLogprobs", "logprobs"),
    Row("logprobs", "top_logprobs", needs="generationConfig.responseLogprobs"),
    Row(
        "thinkingConfig.thinkingLevel",
        "reasoning_effort",
        words={word: word.upper() for word in ("minimal", "low", "medium", "high", "xhigh")},
    ),
    Row(
        "thinkingConfig.thinkingBudget",
        "thinking_budget",
        replaces="generationConfig.thinkingConfig.thinkingLevel",
    ),
    Row(
        "thinkingConfig.includeThoughts",
        "reasoning_summary",
        words={"auto": True, "concise": True, "detailed": True},
    ),
    Row("responseMimeType", "response_format"),
    Row("responseJsonSchema", "format.schema"),
    Row("responseSchema", "format.schema", read=json_schema),
    *meaning(
        "responseModalities",
        "speechConfig",
        "imageConfig",
        "audioTranscriptionConfig",
        "mediaResolution",
        "enableEnhancedCivicAnswers",
    ),
)
_MEDIUM: Final = (Row("data", "part.file"), Row("mimeType", "part.file"), Row("displayName", "part.name"))
_OF_MEDIA: Final = (
    *("mediaResolution", "mediaProcessing", "videoMetadata", "documentMetadata", "spreadsheetMetadata"),
    *("audioMetadata", "audioTranscription", "speechMetadata"),
)
_PARTS: Final = below(
    "contents[].parts[]",
    Row("text", "part.text"),
    *below("inlineData", *_MEDIUM),
    *below(
        "fileData", Row("fileUri", "part.file"), Row("mimeType", "part.file"), Row("displayName", "part.name")
    ),
    *hint("it sets how closely a file is looked at", *_OF_MEDIA),
    Row("functionCall", "call"),
    *below("functionResponse", Row("response", "result"), Row("parts", "result"), *link("id", "name")),
    *meaning("functionResponse.willContinue", "functionResponse.scheduling"),
    *hint(
        "it sets how closely a file is looked at", *(f"functionResponse.parts[].{name}" for name in _OF_MEDIA)
    ),
    Row("thought", "reasoning"),
    *hint("only its own server reads it", "thoughtSignature"),
    *meaning("executableCode", "codeExecutionResult", "toolCall", "toolResponse", "partMetadata"),
)
_TOOLS: Final = below(
    "tools[]",
    *below(
        "functionDeclarations[]",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("parametersJsonSchema", "tool.parameters"),
        Row("parameters", "tool.parameters", read=json_schema),
        Row("responseJsonSchema", "tool.output_schema"),
        Row("response", "tool.output_schema", read=json_schema),
        *meaning("behavior"),
    ),
    Row("googleSearch", "web_search"),
    *meaning("googleSearch.searchTypes", "googleSearch.timeRangeFilter"),
    Row("urlContext", "web_fetch"),
    Row("codeExecution", "code_execution"),
    Row("mcpServers", "mcp_servers", write=_write_servers),
    *meaning("computerUse", "fileSearch", "googleMaps", "googleSearchRetrieval"),
)

GEMINI: Final = RequestTable(
    "gemini",
    "Gemini",
    (":generateContent", ":streamGenerateContent"),
    (
        *below("generationConfig", *_CONFIG),
        Row(
            "toolConfig.functionCallingConfig.mode",
            "tool_choice",
            words={"auto": "AUTO", "none": "NONE", "required": "ANY"},
        ),
        Row("toolConfig.functionCallingConfig", "allowed_tools", read=_read_allowed, write=_write_allowed),
        *meaning("toolConfig.retrievalConfig", "toolConfig.includeServerSideToolInvocations"),
        Row(
            "serviceTier",
            "service_tier",
            words={"default": "standard", "flex": "flex", "priority": "priority"},
        ),
        Row("safetySettings", "safety_settings"),
        *hint("it is for the records of the account", "store", "labels"),
        *link("contents[].role", "systemInstruction.role"),
        Row("systemInstruction", "part.text"),
        *state("cachedContent", "continuationToken"),
        *_PARTS,
        *_TOOLS,
        *_SERVERS,
    ),
    spelled=json_name,
)
"""All that a client of Gemini may say."""
