"""What clients mean, and where each format's own types have a place for it.

A place is a pattern of names of rows. ``TEXT`` is for content that each server takes, as text. A test checks each pattern
against the types, so that none is out of date.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MEANINGS", "NOT_HERE", "NOT_OF_VLLM", "TEXT", "meaning_of", "place_of"]

TEXT: Final = "text"
"""The place of content that can be said in words."""

MEANINGS: Final[dict[str, dict[str, str]]] = {
    # Options.
    "temperature": {
        "chat": "^temperature$",
        "responses": "^temperature$",
        "gemini": "^temperature$",
        "ollama": r"\.temperature$",
        "bedrock": r"\.temperature$",
        "cohere": "^temperature$",
        "mistral": "^temperature$",
    },
    "top_p": {
        "chat": "^top_p$",
        "responses": "^top_p$",
        "gemini": "^top_p$",
        "ollama": r"\.top_p$",
        "bedrock": r"\.topP$",
        "cohere": "^p$",
        "mistral": "^top_p$",
    },
    "top_k": {
        "gemini": "^top_k$",
        "ollama": r"\.top_k$",
        "cohere": "^k$",
        "mistral": "^top_k$",
    },
    "max_tokens": {
        "chat": "^max_(completion_)?tokens$",
        "responses": "^max_output_tokens$",
        "gemini": "^max_output_tokens$",
        "ollama": r"\.num_predict$",
        "bedrock": r"\.maxTokens$",
        "cohere": "^max_tokens$",
        "mistral": "^max_tokens$",
    },
    "stop": {
        "chat": r"^stop\b",
        "messages": "^stop_sequences",
        "gemini": "^stop_sequences",
        "ollama": r"\.stop\b",
        "bedrock": "stopSequences",
        "cohere": "^stop_sequences",
        "mistral": "^stop$",
    },
    "seed": {
        "chat": "^seed$",
        "gemini": "^seed$",
        "ollama": r"\.seed$",
        "cohere": "^seed$",
        "mistral": "^random_seed$",
    },
    "frequency_penalty": {
        "chat": "^frequency_penalty$",
        "gemini": "^frequency_penalty$",
        "ollama": r"\.frequency_penalty$",
        "cohere": "^frequency_penalty$",
        "mistral": "^frequency_penalty$",
    },
    "presence_penalty": {
        "chat": "^presence_penalty$",
        "gemini": "^presence_penalty$",
        "ollama": r"\.presence_penalty$",
        "cohere": "^presence_penalty$",
        "mistral": "^presence_penalty$",
    },
    "repetition_penalty": {
        "ollama": r"\.repeat_penalty$",
        "mistral": "^repetition_penalty$",
    },
    "log probabilities": {
        "chat": "^logprobs=true",
        "ollama": "^logprobs=true",
        "gemini": "^response_logprobs=true",
        "cohere": "^logprobs$",
        "mistral": "^logprobs$",
    },
    "top_logprobs": {
        "chat": "^top_logprobs$",
        "responses": "^top_logprobs$",
        "ollama": "^top_logprobs$",
        "gemini": "^logprobs$",
        "mistral": "^top_logprobs$",
    },
    "number of answers": {
        "chat": "^n$",
        "gemini": "^candidate_count$",
        "mistral": "^n$",
    },
    "verbosity": {
        "chat": "^verbosity=(low|high)",
        "responses": r"^text\.verbosity=(low|high)",
    },
    "prediction": {
        "chat": "^prediction",
        "mistral": "^prediction",
    },
    "end user": {
        "chat": "^(user|safety_identifier)$",
        "responses": "^(user|safety_identifier)$",
        "messages": r"^metadata\.user_id$",
    },
    "metadata": {
        "chat": "^metadata$",
        "responses": "^metadata$",
        "bedrock": "^requestMetadata$",
        "mistral": "^metadata$",
    },
    "cache key": {
        "chat": "^prompt_cache_key$",
        "responses": "^prompt_cache_key$",
        "mistral": "^prompt_cache_key$",
    },
    "cache retention": {
        "chat": "^prompt_cache_retention",
        "responses": "^prompt_cache_retention",
    },
    "cache options": {
        "chat": "^prompt_cache_options",
        "responses": r"^prompt_cache_options(?!\.(comparison|prewarm)|\.ttl=12h)",
    },
    "cache point of content": {
        "chat": "messages.*prompt_cache_breakpoint$",
        "responses": r"input.*(message|Message\w*)\].*prompt_cache_breakpoint$",
        "messages": r"(messages\[\]\[user\]\.content\[list\]\[\]\[(text|image|document|tool_result|search_result)\]|system\[list\]\[\])\.cache_control$",
        "bedrock": r"content\[\]\.cachePoint$",
    },
    "cache point of tools": {
        "messages": r"^tools\[\]\[custom\]\.cache_control$",
        "bedrock": r"tools\[\]\.cachePoint$",
    },
    "service tier, default": {
        "chat": "^service_tier=default",
        "responses": "^service_tier=default",
        "messages": "^service_tier=standard_only",
        "gemini": "^service_tier=standard",
        "bedrock": r"^serviceTier\.type$",
        "mistral": "^service_tier",
    },
    "service tier": {
        "chat": "^service_tier=(flex|priority)",
        "responses": "^service_tier=(flex|priority)",
        "gemini": "^service_tier=(flex|priority)",
        "bedrock": r"^serviceTier\.type$",
    },
    "moderation": {
        "chat": "^moderation",
        "responses": "^moderation",
    },
    "compaction of the context": {
        "responses": r"^context_management\[\]\.compact_threshold$",
        "messages": r"^context_management\.edits\[\]\[compact_20260112\]\.trigger$",
    },
    # Reasoning.
    "effort": {
        "chat": "^reasoning_effort=(low|medium|high)",
        "responses": r"^reasoning\.effort=(low|medium|high)",
        "messages": r"^output_config\.effort=(low|medium|high)",
        "gemini": "thinking_level=(LOW|MEDIUM|HIGH)",
        "bedrock": r"^outputConfig\.effort$",
        "ollama": r"^think\[str\]",
        "mistral": "^reasoning_effort",
    },
    "effort in thought": {
        "chat": "^reasoning_effort=none",
        "messages": r"^thinking\[disabled\]",
        "ollama": r"^think\[bool\]=false",
        "cohere": r"^thinking\.type",
    },
    "thinking budget": {
        "messages": r"^thinking\[enabled\]$",
        "gemini": "thinking_budget$",
        "cohere": r"^thinking\.token_budget$",
    },
    "shown thoughts": {
        "responses": r"^reasoning\.summary=",
        "gemini": "include_thoughts=true",
        "messages": r"^thinking\[\w+\]\.display=summarized",
    },
    # The form of the answer.
    "answer schema": {
        "chat": r"^response_format\[json_schema\]$",
        "responses": r"^text\.format\[json_schema\]$",
        "messages": r"^output_config\.format$",
        "gemini": "^response_json_schema$",
        "ollama": r"^format\[dict\]$",
        "bedrock": r"jsonSchema\.schema$",
        "cohere": "json_schema$",
        "mistral": "json_schema$",
    },
    "description of the schema": {
        "chat": r"^response_format\[json_schema\]\.json_schema\.description$",
        "responses": r"^text\.format\[json_schema\]\.description$",
        "bedrock": r"jsonSchema\.description$",
    },
    # Tools.
    "tool description": {
        "chat": r"^tools\[\]\[function\]\.function\.description$",
        "responses": r"^tools\[\]\[function\]\.description$",
        "messages": r"^tools\[\]\[custom\]\.description$",
        "gemini": r"function_declarations\[\]\.description$",
        "ollama": r"^tools\[\]\.function\.description$",
        "bedrock": r"toolSpec\.description$",
        "cohere": r"function\.description$",
    },
    "strict tools": {
        "chat": r"^tools.*function\.strict=true",
        "responses": r"^tools\[\]\[function\]\.strict=true",
        "messages": r"^tools\[\]\[custom\]\.strict=true",
        "bedrock": r"toolSpec\.strict$",
        "cohere": "^strict_tools$",
    },
    "deferred tools": {
        "responses": r"^tools\[\]\[function\]\.defer_loading=true",
        "messages": r"^tools\[\]\[custom\]\.defer_loading=true",
    },
    "schema of a result": {
        "responses": r"^tools\[\]\[function\]\.output_schema$",
        "gemini": r"function_declarations\[\]\.response_json_schema$",
    },
    "web search": {
        "chat": "^web_search_options$",
        "responses": r"^tools\[\]\[WebSearchToolParam\]$",
        "messages": r"^tools\[\]\[web_search_\d+\]$",
        "gemini": r"^tools\[\]\.google_search$",
    },
    "place of the searcher": {
        "chat": r"^web_search_options\.user_location\.approximate\.\w+$",
        "responses": r"^tools\[\]\[WebSearchToolParam\]\.user_location\.(city|country|region|timezone)$",
        "messages": r"^tools\[\]\[web_search_\d+\]\.user_location\.\w+$",
    },
    "size of the search": {
        "chat": r"^web_search_options\.search_context_size=(low|high)",
        "responses": r"^tools\[\]\[WebSearchToolParam\]\.search_context_size=(low|high)",
    },
    "domains of the search": {
        "responses": r"^tools\[\]\[WebSearchToolParam\]\.filters\.allowed_domains$",
        "messages": r"^tools\[\]\[web_search_\d+\]\.allowed_domains$",
    },
    "fetching pages": {
        "messages": r"^tools\[\]\[web_fetch_\d+\]$",
        "gemini": r"^tools\[\]\.url_context$",
    },
    "running code": {
        "responses": r"^tools\[\]\[code_interpreter\]\.container\[auto\]$",
        "messages": r"^tools\[\]\[code_execution_\d+\]$",
        "gemini": r"^tools\[\]\.code_execution$",
    },
    "MCP server": {
        "responses": r"^tools\[\]\[mcp\](\.server_url|\.authorization)?$",
        "messages": r"^mcp_servers(\[\]\.authorization_token)?$",
        "gemini": r"^tools\[\]\.mcp_servers$",
    },
    "MCP tools allowed": {
        "responses": r"^tools\[\]\[mcp\]\.allowed_tools\[list\]$",
        "messages": r"^mcp_servers\[\]\.tool_configuration\.allowed_tools$",
    },
    "tools that the client runs": {
        "responses": r"^tools\[\]\[(shell|local_shell|apply_patch)\]$",
        "messages": r"^tools\[\]\[(bash|text_editor|memory)_\d+\]$",
        "chat": TEXT,
        "gemini": TEXT,
        "ollama": TEXT,
        "bedrock": TEXT,
        "cohere": TEXT,
        "mistral": TEXT,
    },
    "results that the client brings": {
        "responses": r"^input\[list\]\[\]\[((shell|local_shell|apply_patch|custom_tool|function)_call_output|tool_search_output)\](\.output(\[str\]|\[list\]|\[list\]\[\]\[input_text\]|\[\]\.outcome\[\w+\])?| and a turn| without call_id)?$",
        "messages": TEXT,
        "chat": TEXT,
        "gemini": TEXT,
        "ollama": TEXT,
        "bedrock": TEXT,
        "cohere": TEXT,
        "mistral": TEXT,
    },
    "a picture of a screen, as a result": {
        "responses": r"^input\[list\]\[\]\[computer_call_output\](\.output\.image_url| and a turn)?$",
        "messages": r"\[tool_result\].*\[image\]$",
        "chat": TEXT,
    },
    "allowed tools": {
        "chat": r"^tool_choice\[allowed_tools\]",
        "responses": r"^tool_choice\[allowed_tools\]",
        "gemini": "allowed_function_names$",
    },
    "auto, with valid calls": {
        "gemini": "mode=VALIDATED",
        "chat": "^tool_choice.word.=auto",
        "responses": "^tool_choice.word.=auto",
        "messages": r"^tool_choice\[auto\]$",
        "mistral": "^tool_choice",
        "bedrock": "toolChoice.auto",
    },
    "one call at a time": {
        "chat": "^parallel_tool_calls=false",
        "responses": "^parallel_tool_calls=false",
        "messages": "disable_parallel_tool_use=true",
        "mistral": "^parallel_tool_calls",
    },
    "tools added later": {
        "messages": r"\[(user|system)\]\.content\[list\]\[\]\[tool_addition\](\.tool\[tool_reference\])?$",
        "bedrock": r"content\[\]\.toolAddition$",
    },
    "tools removed later": {
        "messages": r"\[(user|system)\]\.content\[list\]\[\]\[tool_removal\](\.tool\[tool_reference\])?$",
        "bedrock": r"content\[\]\.toolRemoval$",
    },
    # Content.
    "a file of text": {
        "chat": r"\[file\] of text",
        "responses": r"\[input_file\] of text",
        "gemini": "inline_data of text",
        "messages": TEXT,
        "ollama": TEXT,
        "cohere": TEXT,
        "bedrock": TEXT,
        "mistral": TEXT,
    },
    "a document of text": {
        "messages": r"\[document\]\.source\[(text|content)\](\.content\[(str|list)\](\[\]\[text\])?)?( alone)?$",
        "chat": TEXT,
        "responses": TEXT,
        "gemini": TEXT,
        "ollama": TEXT,
        "bedrock": r"document\.source\.text$",
        "cohere": TEXT,
        "mistral": TEXT,
    },
    "a search result": {
        "messages": r"\[search_result\]( alone)?$",
        "chat": TEXT,
        "responses": TEXT,
        "gemini": TEXT,
        "ollama": TEXT,
        "bedrock": r"content\[\]\.searchResult$",
        "cohere": TEXT,
        "mistral": TEXT,
    },
    "a found tool, in a result": {
        "messages": r"\[tool_result\].*\[tool_reference\]$",
        "chat": TEXT,
        "responses": TEXT,
        "gemini": TEXT,
        "ollama": TEXT,
        "bedrock": TEXT,
        "cohere": TEXT,
        "mistral": TEXT,
    },
    "a browser's state, in a result": {
        "messages": r"\[tool_result\].*\[browser_state\]$",
        "chat": TEXT,
        "responses": TEXT,
        "gemini": TEXT,
        "ollama": TEXT,
        "bedrock": TEXT,
        "cohere": TEXT,
        "mistral": TEXT,
    },
    "a document's context": {
        "messages": r"\[document\]\.context$",
        "bedrock": r"document\.context$",
    },
    "citations of a document": {
        "messages": r"\[document\]\.citations\.enabled=true",
        "bedrock": r"document\.citations\.enabled$",
    },
    "name of a file": {
        "chat": r"file\.filename$",
        "responses": r"^input.*\[input_file\]\.filename$",
        "messages": r"\[document\]\.title$",
        "gemini": r"^part\.inline_data\.display_name$",
        "bedrock": r"document\.name$",
    },
    "a file's URL": {
        "responses": r"Param\]\.content\[list\]\[\]\[input_file\]\.file_url( alone)?$",
        "messages": r"\[document\]\.source\[url\]$",
        "gemini": r"^part\.file_data$",
    },
    "detail of a picture": {
        "chat": r"image_url\.detail=(low|high)",
        "responses": r"^input.*input_image\]\.detail=(low|high)",
        "cohere": r"image_url\.detail",
        "mistral": TEXT,
    },
    "sound": {
        "chat": r"\[input_audio\]$",
        "bedrock": r"content\[\]\.audio$",
        "gemini": r"^part\.inline_data$",
    },
    "an error as a result": {
        "messages": r"\[tool_result\]\.is_error=true",
        "bedrock": r"toolResult\.status$",
    },
    "name of the speaker": {
        "chat": r"\[(user|system|assistant)\]\.name$",
    },
    "citations of an answer": {
        "messages": r"\[assistant\].*\[text\]\.citations\[\]\[web_search_result_location\]$",
        "responses": r"annotations\[\]\[url_citation\]$",
        "bedrock": r"location\.web$",
    },
    "a refusal": {
        "chat": r"\[assistant\]\.refusal$",
        "responses": r"\[refusal\]$",
    },
}
"""The place of each meaning in the formats that have one."""

NOT_OF_VLLM: Final = frozenset(
    {
        "a file of text",
        "allowed tools",
        "cache key",
        "cache options",
        "cache point of content",
        "cache retention",
        "end user",
        "metadata",
        "moderation",
        "name of a file",
        "place of the searcher",
        "prediction",
        "service tier",
        "service tier, default",
        "size of the search",
        "verbosity",
        "web search",
    }
)
"""What OpenAI's Chat Completions have and those of vLLM have not."""


NOT_HERE: Final[dict[tuple[str, str], str]] = {
    # ``display`` is a field of thinking that is on (``ThinkingConfigAdaptiveParam``), and the rows ask for none.
    ("shown thoughts", "messages"): "",
    # The row's data are of no type that is a sound.
    ("sound", "chat"): r"^part\.inline_data$",
    # Converse takes a picture as data or from S3, and the rows have its URL (``ImageSource``).
    ("cache point of content", "bedrock"): r"\[(image_url|input_image)\]\.prompt_cache",
    # Neither has a part for sound (``ResponseInputContentParam``, ``BetaContentBlockParam``).
    ("cache point of content", "messages"): r"\[input_audio\]",
    # Parts of an answer take no mark (``ResponseOutputTextParam``, ``ResponseOutputRefusalParam``).
    ("cache point of content", "responses"): r"\[(input_audio|assistant)\]",
    # A citation of the web has what only Anthropic's server makes (``encrypted_index`` is required).
    ("citations of an answer", "messages"): "",
    # It holds what only OpenAI's server makes (``ResponseOutputMessageParam`` requires its ``id``), and the form for
    # other answers has no citations (``EasyInputMessageParam``).
    ("citations of an answer", "responses"): "",
    # The server writes the block itself, where it has cited a document (``CitationsContentBlock``).
    ("citations of an answer", "bedrock"): "",
}
"""Rows that have no place in a format that has one for their meaning, by a pattern, with the types that say so."""


def meaning_of(format: str, row: str, target: str, provider: str = "") -> str | None:
    """Return what *row* means that *target* has a place for, or ``None``."""
    for meaning, places in MEANINGS.items():
        own = places.get(format, TEXT)
        is_known = target in places and not (provider == "vllm" and meaning in NOT_OF_VLLM)
        without = NOT_HERE.get((meaning, target))
        is_known &= without is None or not re.search(without, row)
        if is_known and own is not TEXT and re.search(own, row):
            return meaning
    return None


def place_of(format: str, row: str, target: str, provider: str = "") -> str | None:
    """Return the place that *target* has for what *row* means: a pattern, or ``TEXT``; ``None`` if it has none."""
    meaning = meaning_of(format, row, target, provider)
    return None if meaning is None else MEANINGS[meaning][target]
