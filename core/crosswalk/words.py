"""The names that people know from other libraries, and ours: what classes, packages, keywords and command lines answer about
a name that they do not have. A table has no name that its owner has, and each word that it gives exists.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")


def _many(*rows: tuple[str, str]) -> dict[str, str]:
    """The right word by foreign name, of rows of several names for one word."""
    return {name: word for names, word in rows for name in names.split()}


_ASKED: Final = _many(
    (
        "ask chat completion completions create generate invoke predict run prompt send message messages",
        ".complete(...)",
    ),
    ("acomplete acompletion ainvoke", "await .complete(...) of crosswalk.service.LLMService"),
    ("astream", ".stream(...) of crosswalk.service.LLMService"),
    ("stream_complete complete_stream iter", ".stream(...)"),
    (
        "parse structured extract with_structured_output generate_object",
        ".complete_json(messages, Type)",
    ),
    ("responses", ".complete(...)"),
    ("embeddings", ".embed(...)"),
    ("bind_tools", ".complete(..., tools=[...])"),
    (
        "batch abatch",
        ".complete(...) for each request, or crosswalk.service.build_batch_requests for a batch file",
    ),
    ("list_models", ".models()"),
    ("from_env from_config", "the class itself, which reads the environment and the configuration"),
)
_AGENT: Final = _many(
    ("ask chat invoke complete kickoff prompt", ".answer(...)"),
    ("tool tool_plain add_tool", "tools=[function, ...] when you make the agent"),
    ("iter run_stream astream run_streamed", ".stream(...)"),
)
_RUN: Final = _many(
    ("output result data value final_output text content messages", ".finish(), or agent.answer(...)"),
    ("usage", ".finish().usage"),
    ("all_messages new_messages", ".conversation"),
)
_EXCEPTIONS: Final = _many(
    ("APIError APIStatusError LLMError", "ProviderError"),
    ("APIConnectionError InternalServerError ServiceUnavailableError ConnectionError", "ServerError"),
    ("APITimeoutError Timeout TimeoutError", "ProviderTimeoutError"),
    ("BadRequestError UnprocessableEntityError", "InvalidRequestError"),
    ("NotFoundError", "ModelUnavailableError"),
    ("ContextWindowExceededError ContextLengthExceededError", "ContextOverflowError"),
)
_PART: Final = _many(
    ("from_file from_path from_local open load", "the class itself, with a Path or a file's name"),
    ("from_url", "the class itself, with the address"),
    ("from_bytes from_base64 from_data", "the class itself, with the bytes, or data=TEXT for base64"),
)
RIGHT_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "ChatResponse": _many(
        ("content output_text completion answer output response", ".text"),
        ("choices candidates", ".text, or .alternatives for what comes after the first"),
        ("model_dump dict asdict as_dict", ".to_dict()"),
        ("json to_json model_dump_json", "crosswalk.to_json(response)"),
        ("get keys items values", ".to_dict(), a dictionary"),
        ("response_metadata", ".metadata"),
        ("raw raw_response body", ".raw_events, the server's bytes"),
        ("stop_reason finish done_reason", ".finish_reason, or .raw_finish_reason for the server's own word"),
        ("usage_metadata token_usage tokens", ".usage"),
        ("thinking reasoning_content thoughts", ".reasoning"),
        ("parse output_parsed", ".parsed(Type)"),
        ("role", ".message.role"),
        ("provider provider_id", ".metadata.provider_id"),
        ("extensions extra model_extra", ".metadata.extensions"),
        ("cost", ".usage.cost, or crosswalk.cost_of(response)"),
        ("latency duration", ".metadata.request_duration"),
    ),
    "ResponseDelta": _many(
        ("content delta choices", ".text"),
        ("reasoning thinking reasoning_content", ".reasoning_delta"),
        ("tool_calls tool_call", ".tool_call_delta"),
        ("refusal", ".refusal_delta"),
        ("stop_reason", ".finish_reason"),
        ("model_dump dict", "crosswalk.to_jsonable(delta)"),
    ),
    "StreamEvent": _many(
        ("content output_text choices", ".text"),
        ("type kind", ".event_type"),
        ("model_dump dict", "crosswalk.to_jsonable(event)"),
    ),
    "UsageInfo": _many(
        ("prompt input", ".prompt_tokens"),
        ("completion output", ".completion_tokens"),
        ("total", ".total_tokens"),
        ("prompt_tokens_details completion_tokens_details", ".cached_tokens, .reasoning_tokens or .details"),
        ("model_dump dict", "crosswalk.to_jsonable(usage)"),
    ),
    "ChatMessage": _many(
        ("parts", ".content"),
        ("human from_user", ".user(...)"),
        ("ai model bot from_assistant", ".assistant(...)"),
        ("developer", ".system(...)"),
        ("tool function", ".tool_result(...)"),
        ("model_dump dict", "crosswalk.to_jsonable(message)"),
    ),
    "ImagePart": _PART,
    "AudioPart": _PART,
    "VideoPart": _PART,
    "FilePart": _PART,
    "ToolCall": _many(
        ("function", ".name and .arguments"),
        ("args input", ".parsed()"),
        ("model_dump dict", "crosswalk.to_jsonable(call)"),
    ),
    "ResponseMetadata": _many(
        ("provider", ".provider_id"),
        ("model", ".model_id"),
        ("extra raw", ".extensions"),
        ("latency duration", ".request_duration"),
    ),
    "JSONAnswer": _many(
        ("data parsed output answer object", ".value"),
        ("text content", ".response.text"),
        ("usage", ".response.usage"),
    ),
    "DeltaStream": _many(
        ("text get_final_text", "delta.text for each delta, or .until_done().text"),
        ("get_final_message get_final_completion final_response", ".until_done()"),
    ),
    "EventStream": _many(
        ("get_final_message get_final_completion get_final_response until_done", ".response"),
        ("text_stream text_deltas", ".text"),
        ("close", ".aclose()"),
    ),
    "SyncEventStream": _many(
        ("get_final_message get_final_completion get_final_response until_done", ".response"),
        ("text_stream text_deltas", ".text"),
        ("aclose", ".close()"),
    ),
    "LLMService": {**_ASKED, "close": ".aclose()"},
    "SyncLLMService": {**_ASKED, "aclose": ".close()"},
    "Agent": {**_AGENT, "run_sync": "crosswalk.SyncAgent(...).answer(...)"},
    "SyncAgent": _AGENT,
    "AgentRun": _RUN,
    "SyncAgentRun": _RUN,
    "AgentResponse": _many(
        ("data result", ".value"),
        ("text content", ".final_output"),
        ("messages all_messages new_messages", ".conversation"),
        ("tool_calls", ".turns"),
    ),
    "ChatAgent": _many(("ask run invoke complete send", ".chat(...)"), ("stream", ".stream_chat(...)")),
    "AsyncChatAgent": _many(("ask run invoke complete send", ".chat(...)"), ("stream", ".stream_chat(...)")),
    "ChatSession": _many(
        ("append add", ".add_message(...)"),
        ("history", ".messages"),
    ),
    "StructuredParser": _many(
        ("parse_text loads validate from_text invoke", ".parse(text)"),
        (
            "get_format_instructions",
            "crosswalk.SyncLLMService(...).complete_json(messages, Type), which sends the schema",
        ),
        ("stream parse_partial", ".parse_stream(pieces)"),
        ("json_schema schema", "crosswalk.json_schema(Type)"),
    ),
    "ParseResult": _many(
        ("data output parsed result", ".value, or .unwrap(), which raises if there is none"),
        ("success is_ok is_valid", ".ok"),
        ("error", ".errors"),
    ),
    "Conversion": _many(
        ("body output result content response", ".value"),
        ("losses warnings", ".report.losses"),
    ),
    "crosswalk": {
        **_many(
            (
                "completion acompletion complete ask chat stream",
                "crosswalk.service.SyncLLMService(...).complete(...)",
            ),
            (
                "Client AsyncClient OpenAI AsyncOpenAI Anthropic AsyncAnthropic Ollama LLM Service AsyncLLMService",
                "crosswalk.SyncLLMService or crosswalk.LLMService",
            ),
            ("parse", "crosswalk.structured.parse(text, Type), or crosswalk.normalize(body)"),
            ("normalize_async anormalize normalize_astream", "crosswalk.anormalize_stream"),
            ("load loads read", "crosswalk.from_json"),
            ("normalise normalize_file normalize_response normalize_body", "crosswalk.normalize"),
            (
                "normalise_stream stream_normalize normalize_chunks normalize_events",
                "crosswalk.normalize_stream",
            ),
            ("translate transform", "crosswalk.convert"),
            ("dump dumps", "crosswalk.to_json"),
            ("Response Completion ModelResponse ChatCompletion", "crosswalk.ChatResponse"),
            ("ChatOpenAI ChatAnthropic ChatOllama Router from_openai", "crosswalk.SyncLLMService"),
            ("completion_cost cost_per_token", "crosswalk.cost_of"),
            (
                "Message HumanMessage AIMessage SystemMessage ToolMessage UserMessage AssistantMessage",
                "crosswalk.ChatMessage",
            ),
            ("Image ImageUrl ImageContent", "crosswalk.ImagePart"),
            ("RunContext", "crosswalk.agent.ToolContext"),
            ("ModelRetry", "crosswalk.agent.ToolError"),
            ("PydanticOutputParser JsonOutputParser", "crosswalk.StructuredParser"),
            ("Usage", "crosswalk.UsageInfo"),
            ("Delta Chunk ChatCompletionChunk", "crosswalk.ResponseDelta"),
            ("Provider Plugin", "crosswalk.plugins"),
        ),
        **{name: f"crosswalk.{word}" for name, word in _EXCEPTIONS.items()},
    },
    "crosswalk.service": _many(
        (
            "Client AsyncClient OpenAI AsyncOpenAI Service AsyncLLMService LLM",
            "LLMService, or SyncLLMService",
        ),
        ("completion acompletion complete", "SyncLLMService(...).complete(...)"),
        ("Message ChatMessage", "crosswalk.ChatMessage"),
        ("Request", "ChatRequest"),
        ("Tool", "ToolDefinition, or crosswalk.agent.tool for a function"),
    ),
    "crosswalk.agent": _many(
        ("AsyncAgent", "Agent"),
        ("function_tool FunctionTool", "tool"),
        ("RunContext", "ToolContext"),
        ("ModelRetry", "ToolError"),
        ("AgentResult RunResult AgentRunResult", "AgentResponse"),
        ("Runner", "Agent(...).run(...)"),
        ("Session SQLiteSession", "ChatSession, with SQLiteStore"),
    ),
    "crosswalk.testing": _many(("MockServer FakeServer MockLLM FakeLLM TestServer", "ReplayServer")),
    "crosswalk.types": _many(
        ("Message HumanMessage AIMessage", "crosswalk.ChatMessage"),
        ("Response ChatCompletion", "crosswalk.ChatResponse"),
        ("Usage", "crosswalk.UsageInfo"),
        ("Delta Chunk", "crosswalk.ResponseDelta"),
    ),
    "a form": _many(
        ("openai chat openai_chat chat-completions chat_completions openai-chat-completions", "openai-chat"),
        ("responses openai_responses", "openai-responses"),
        ("anthropic-messages messages", "anthropic"),
        ("google gemini-native generateContent", "gemini"),
        ("completions", "openai-completions"),
    ),
    "a provider": _many(
        ("openai_chat openai-chat", "openai"),
        ("azure azure_openai azure-openai", "openai with the address of the Azure resource"),
        ("responses openai-responses", "openai_responses"),
        ("google googleai google_genai google-genai google-gla", "gemini"),
        ("aws amazon amazon-bedrock bedrock_converse", "bedrock"),
        ("x-ai x_ai", "xai"),
        ("mistralai mistral-ai", "mistral"),
        ("togetherai together_ai together-ai", "together"),
        ("fireworksai fireworks_ai fireworks-ai", "fireworks"),
        ("lm-studio lm_studio", "lmstudio"),
        ("llama.cpp llama-cpp llama_cpp llama-server", "llamacpp"),
        ("alibaba tongyi", "dashscope"),
        ("moonshotai", "moonshot"),
        ("zhipu zhipuai", "zai"),
        ("pplx", "perplexity"),
        ("workers-ai workers_ai", "cloudflare"),
    ),
    "a command line": _many(
        ("--api-key --key --token", "the environment, such as OPENAI_API_KEY or CROSSWALK_OPENAI_API_KEY"),
        ("--url --host --api-base --endpoint --server --base", "--base-url URL"),
        ("--prompt --message --query --input", "the prompt itself, in quotes"),
        ("--system-prompt --instructions", "--system TEXT"),
        ("--temp", "--temperature X"),
        ("--max-output-tokens --max-completion-tokens --max-new-tokens --num-predict", "--max-tokens N"),
        ("--reasoning-level --effort --thinking", "--reasoning-effort"),
        ("--from --vendor --dialect", "--provider NAME"),
        ("--out --outfile --dest", "--output"),
        ("-p", "--provider NAME, and the prompt itself, in quotes"),
        ("-o", "> FILE for what a command writes"),
        ("-t", "--temperature X"),
        ("-u", "--base-url URL"),
        ("-k", "the environment, such as OPENAI_API_KEY or CROSSWALK_OPENAI_API_KEY"),
        ("-j", "--json"),
        ("--tools --tool --functions", "crosswalk.SyncAgent in Python, which runs tools"),
        ("replay mock", "crosswalk.testing.ReplayServer in Python, or crosswalk demo"),
        ("run prompt complete query", "crosswalk ask"),
        ("list plugins list-providers", "crosswalk providers"),
        ("list-models ls", "crosswalk models"),
        ("proxy gateway start server", "crosswalk serve"),
        ("test validate lint verify", "crosswalk check"),
        ("stats usage cost costs summary analyze", "crosswalk report"),
        ("translate transform", "crosswalk convert"),
        ("read map detect", "crosswalk normalize"),
        ("init new create-plugin scaffold", "crosswalk new-plugin"),
        ("version", "crosswalk --version"),
        ("repl talk shell", "crosswalk chat"),
        ("capture", "crosswalk record"),
    ),
    "crosswalk.structured": _many(
        ("Parser PydanticOutputParser JsonOutputParser OutputParser", "StructuredParser"),
        ("loads parse_json", "parse(text, Type)"),
        ("json_schema", "crosswalk.json_schema"),
    ),
}


RightKeyword: TypeAlias = str | tuple[str, str]
"""A keyword of ours; or one by which a function is known, and what to do there."""

_SYSTEM: Final = 'put a system message first, ("system", TEXT)'
_BY_CALL: Final = "give it to each call, as in .complete(request, {0}=...)"
_OF_SERVICE: Final = "give it to the service, as in SyncLLMService(endpoint, {0}=...)"
_ADDRESS: Final = "give it to the service's Endpoint(..., base_url=...)"
_FILE: Final = "give a Path or a file's name first, without a keyword"
_KEY: Final = "give it to the service's Endpoint(..., api_key=...)"


def _keywords(*rows: tuple[str, *tuple[RightKeyword, ...]]) -> dict[str, tuple[RightKeyword, ...]]:
    """The right keywords by foreign name, of rows of several names. ``{0}`` in what to do means the first of them."""
    return {
        name: tuple(
            one if isinstance(one, str) else (one[0], one[1].replace("{0}", names.split()[0]))
            for one in rights
        )
        for names, *rights in rows
        for name in names.split()
    }


RIGHT_KEYWORDS: Final[Mapping[str, tuple[RightKeyword, ...]]] = _keywords(
    (
        "max_retries",
        ("retries", "retries= asks the model again, and retry= sends a failed request again"),
        "retry",
        "attempts",
    ),
    ("num_retries", "retry", "attempts"),
    ("base_url url host api_base endpoint api_url", "base_url", ("request", _ADDRESS)),
    ("api_key", ("request", _KEY)),
    ("key token", "api_key", ("request", _KEY), ("observers", _KEY)),
    ("timeout", ("takes_media", _OF_SERVICE)),
    ("retry", ("takes_media", _OF_SERVICE)),
    *(
        (name, ("takes_media", _BY_CALL), ("observers", _BY_CALL))
        for name in ("temperature", "max_tokens", "top_p", "reasoning_effort")
    ),
    ("fallbacks fallback", ("observers", "give each endpoint by itself, first the one to ask first")),
    ("messages", "request", "turns"),
    ("prompt", "request", "messages"),
    (
        "system system_prompt system_message preamble instructions",
        "instructions",
        ("request", _SYSTEM),
        ("messages", _SYSTEM),
    ),
    (
        "response_model result_type output_type",
        "output_type",
        "answer",
        ("raw_events", "call .stream_json(messages, Type)"),
        ("request", "call .complete_json(messages, Type)"),
        ("response_format", "a service answers with a type in .complete_json(messages, Type)"),
    ),
    (
        "schema",
        "output_type",
        "answer",
        ("raw_events", "call .stream_json(messages, SCHEMA)"),
        ("request", "call .complete_json(messages, SCHEMA)"),
        "response_format",
        "parameters",
    ),
    ("max_output_tokens num_predict", "max_tokens"),
    ("stop_sequences", "stop"),
    ("functions toolset", "tools"),
    ("function_call", "tool_choice"),
    ("thinking effort reasoning", "reasoning_effort"),
    (
        "extra_body",
        ("provider_options", 'give provider_options={"openai": {...}}, by the id of the provider'),
    ),
    (
        "stream",
        ("answer", "call .stream_json(...)"),
        ("request", "call .stream(...)"),
        ("output_type", "call .stream(...)"),
        ("deps", "call .stream(...)"),
        ("observers", "call .stream(...)"),
    ),
    ("deps_type", ("output_type", "it needs none: give deps= to .answer(...)")),
    ("deps", ("output_type", "give deps= to .answer(...)")),
    ("mime_type", "media_type"),
    ("path file filename", "file", "folder", ("detail", _FILE), ("media_type", _FILE)),
    ("content", "text"),
    ("target dst output_format", "to"),
    ("model model_class pydantic_object", "schema"),
    ("provider provider_id vendor dialect", "provider", "to"),
)
"""What to give or do instead of a keyword of another library, or of another function. The first that is there counts, and no
similar word is suggested for these."""


def right_keyword(name: str, known: Container[str]) -> str | None:
    """Return words for the unknown keyword *name* of a function with the *known* ones: ``, did you mean 'retry'?``.

    ``None`` for a name without a suggestion. An empty text for one that means something else here.
    """
    if name not in RIGHT_KEYWORDS:
        return None
    for right in RIGHT_KEYWORDS[name]:
        if isinstance(right, str):
            if right in known:
                return f", did you mean {right!r}?"
        elif right[0] in known:
            return f": {right[1]}"
    return ""


def right_word(owner: str, name: str) -> str:
    """Return words for the *name*, which *owner* does not have: ``: use .text``, or an empty text without a suggestion.

    Args:
        owner: the name of a class, or the full name of a package.
        name: the name that somebody typed.
    """
    word = RIGHT_WORDS.get(owner, {}).get(name)
    return "" if word is None else f": use {word}"


class AnswersNames(type):
    """The metaclass of classes that also name the right one of their own attributes: ``ChatMessage.human``."""

    def __getattr__(cls, name: str) -> Any:
        message = f"type object {cls.__name__!r} has no attribute {name!r}"
        raise AttributeError(f"{message}{_word(cls, name)}")


def suggests_names(cls: type[T]) -> type[T]:
    """A class decorator: the error for an attribute or a key that the class does not have names the right one.

    Names with a leading underscore are asked for by Python and other libraries, and get Python's own error.
    """
    decorated: Any = cls
    decorated.__getattr__ = _no_attribute
    if not hasattr(cls, "__getitem__") and not hasattr(cls, "__iter__"):
        decorated.__getitem__ = _no_item
    return cls


def _word(cls: type, name: str) -> str:
    return "" if name.startswith("_") else right_word(cls.__name__, name)


def _no_attribute(self: object, name: str) -> Any:
    owner = type(self)
    if hasattr(owner, name):  # a property that failed, or a slot without a value
        return object.__getattribute__(self, name)
    message = f"{owner.__name__!r} object has no attribute {name!r}"
    if word := _word(owner, name):
        raise AttributeError(f"{message}{word}")
    raise AttributeError(message, name=name, obj=self)  # for Python's own suggestions


def _no_item(self: object, key: object) -> Any:
    """Raise what Python does. A list of it, or a dictionary, asks for the item 0."""
    owner = type(self)
    name = key if isinstance(key, str) else "model_dump"
    word = f": use .{name}" if hasattr(owner, name) else _word(owner, name)
    raise TypeError(f"{owner.__name__!r} object is not subscriptable{word}")
