"""What clients of Gemini's ``generateContent`` may say. Each field has a proto name as well, at every depth.

Facts: Google's reference of ``models.generateContent`` and the types of its SDK; provider document "Google Gemini".
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from crosswalk.formats.chat_table import allowed_tools, placed
from crosswalk.wire.gemini import json_name, json_schema
from crosswalk.wire.options import RequestRow, RequestTable, below, hint, link, meaning, state

_MODES: Final = {"auto": "VALIDATED", "required": "ANY"}
"""The words for a choice among named functions. With both, Gemini calls only these."""


def _read_allowed(calling_config: Any) -> dict[str, Any]:
    fields = {json_name(key): value for key, value in calling_config.items()}
    mode = {theirs: ours for ours, theirs in _MODES.items()}[fields["mode"]]
    return {
        "mode": mode,
        "tools": [{"type": "function", "name": name} for name in fields["allowedFunctionNames"]],
    }


def _write_allowed(value: Any) -> dict[str, Any]:
    canonical_choice = allowed_tools(value)
    return {
        "mode": _MODES[canonical_choice["mode"]],
        "allowedFunctionNames": [tool["name"] for tool in canonical_choice["tools"]],
    }


_SERVER_ROWS: Final = below(
    "tools[].mcpServers[]",
    RequestRow("name", "mcp.name"),
    *below(
        "streamableHttpTransport",
        RequestRow("url", "mcp.url"),
        RequestRow("headers", "mcp.headers"),
        RequestRow("headers.Authorization", "mcp.authorization", write="Bearer {}".format),
        *meaning("sseReadTimeout", "timeout", "terminateOnClose"),
    ),
)


def _write_servers(servers: Any) -> list[dict[str, Any]]:
    return [placed(server, "mcp", _SERVER_ROWS, "tools[].mcpServers[]") for server in servers]


_CONFIG_ROWS: Final = (
    RequestRow("temperature", "temperature"),
    RequestRow("topP", "top_p"),
    RequestRow("topK", "top_k", write=partial(max, 0)),
    RequestRow("maxOutputTokens", "max_tokens"),
    RequestRow("stopSequences", "stop"),
    RequestRow("seed", "seed"),
    RequestRow("frequencyPenalty", "frequency_penalty"),
    RequestRow("presencePenalty", "presence_penalty"),
    RequestRow("candidateCount", "n"),
    RequestRow("responseLogprobs", "logprobs"),
    RequestRow("logprobs", "top_logprobs", needs="generationConfig.responseLogprobs"),
    RequestRow(
        "thinkingConfig.thinkingLevel",
        "reasoning_effort",
        words={word: word.upper() for word in ("minimal", "low", "medium", "high", "xhigh")},
    ),
    RequestRow(
        "thinkingConfig.thinkingBudget",
        "thinking_budget",
        replaces="generationConfig.thinkingConfig.thinkingLevel",
    ),
    RequestRow(
        "thinkingConfig.includeThoughts",
        "reasoning_summary",
        words={"auto": True, "concise": True, "detailed": True},
    ),
    RequestRow("responseMimeType", "response_format"),
    RequestRow("responseJsonSchema", "format.schema"),
    RequestRow("responseSchema", "format.schema", read=json_schema),
    *meaning(
        "responseModalities",
        "speechConfig",
        "imageConfig",
        "audioTranscriptionConfig",
        "mediaResolution",
        "enableEnhancedCivicAnswers",
    ),
)
_MEDIUM_ROWS: Final = (
    RequestRow("data", "part.file"),
    RequestRow("mimeType", "part.file"),
    RequestRow("displayName", "part.name"),
)
_MEDIA_FIELDS: Final = (
    *("mediaResolution", "mediaProcessing", "videoMetadata", "documentMetadata", "spreadsheetMetadata"),
    *("audioMetadata", "audioTranscription", "speechMetadata"),
)
_PART_ROWS: Final = below(
    "contents[].parts[]",
    RequestRow("text", "part.text"),
    *below("inlineData", *_MEDIUM_ROWS, RequestRow("", "part.video")),
    *below(
        "fileData",
        RequestRow("fileUri", "part.file"),
        RequestRow("mimeType", "part.file"),
        RequestRow("displayName", "part.name"),
    ),
    *hint("it sets how closely a file is looked at", *_MEDIA_FIELDS),
    RequestRow("functionCall", "call"),
    *below(
        "functionResponse",
        RequestRow("response", "result"),
        RequestRow("parts", "result"),
        *link("id", "name"),
    ),
    *meaning("functionResponse.willContinue", "functionResponse.scheduling"),
    *hint(
        "it sets how closely a file is looked at",
        *(f"functionResponse.parts[].{name}" for name in _MEDIA_FIELDS),
    ),
    RequestRow("thought", "reasoning"),
    *hint("only its own server reads it", "thoughtSignature"),
    *meaning("executableCode", "codeExecutionResult", "toolCall", "toolResponse", "partMetadata"),
)
_TOOL_ROWS: Final = below(
    "tools[]",
    *below(
        "functionDeclarations[]",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("parametersJsonSchema", "tool.parameters"),
        RequestRow("parameters", "tool.parameters", read=json_schema),
        RequestRow("responseJsonSchema", "tool.output_schema"),
        RequestRow("response", "tool.output_schema", read=json_schema),
        *meaning("behavior"),
    ),
    RequestRow("googleSearch", "web_search"),
    *meaning("googleSearch.searchTypes", "googleSearch.timeRangeFilter"),
    RequestRow("urlContext", "web_fetch"),
    RequestRow("codeExecution", "code_execution"),
    RequestRow("fileSearch", "file_search"),
    RequestRow("fileSearch.fileSearchStoreNames", "hosted.file_store_ids"),
    RequestRow("fileSearch.topK", "hosted.max_results"),
    *meaning("fileSearch.metadataFilter"),
    RequestRow("mcpServers", "mcp_servers", write=_write_servers),
    *meaning("computerUse", "googleMaps", "googleSearchRetrieval"),
)

GEMINI: Final = RequestTable(
    "gemini",
    "Gemini",
    (":generateContent", ":streamGenerateContent"),
    (
        *below("generationConfig", *_CONFIG_ROWS),
        RequestRow(
            "toolConfig.functionCallingConfig.mode",
            "tool_choice",
            words={"auto": "AUTO", "none": "NONE", "required": "ANY"},
        ),
        RequestRow(
            "toolConfig.functionCallingConfig", "allowed_tools", read=_read_allowed, write=_write_allowed
        ),
        *meaning("toolConfig.retrievalConfig", "toolConfig.includeServerSideToolInvocations"),
        RequestRow(
            "serviceTier",
            "service_tier",
            words={"default": "standard", "flex": "flex", "priority": "priority"},
        ),
        RequestRow("safetySettings", "safety_settings"),
        *hint("it is for the records of the account", "store", "labels"),
        *link("contents[].role", "systemInstruction.role"),
        RequestRow("systemInstruction", "part.text"),
        RequestRow("cachedContent", "cached_content"),
        *state("continuationToken"),
        *_PART_ROWS,
        *_TOOL_ROWS,
        *_SERVER_ROWS,
    ),
    spelled=json_name,
)
"""All that a client of Gemini may say."""
