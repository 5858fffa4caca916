"""OpenTelemetry spans and metrics of observed exchanges, and their requests in its words."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from crosswalk import __version__
from crosswalk.otel import SCHEMA_URL, otel_attributes, otel_output_messages, otel_provider_name
from crosswalk.records import look_up
from crosswalk.service import ClientTelemetry, option_paths, part_types
from crosswalk.types.json import dump_json, load_json
from crosswalk_observe.exchange import ObservedExchange, WatchedExchange, option_names

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider


# -------------------------------------------------------------------------------- messages
# The request in the words of OpenTelemetry's GenAI conventions, for every dialect.


_SYSTEM_KEYS: Final = ("system", "instructions", "systemInstruction", "system_instruction", "preamble")
_PROMPT_KEYS: Final = ("prompt", "inputs", "inputText", "message", "query")
_RESULT_TYPES: Final = (*part_types("result"), "toolResult", "tool")
_CALL_TYPES: Final = (*part_types("call"), "toolUse", "function")
_TEXT_TYPES: Final = part_types("part.text")
_DEFINED_TYPES: Final = frozenset(
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
    messages = []
    for name in ("chat_history", "messages", "contents", "input"):
        turns = body.get(name)
        if isinstance(turns, str):
            turns = [turns]
        if isinstance(turns, list):
            messages += [_message(one) for one in turns]
    for name in _PROMPT_KEYS:
        prompt = body.get(name)
        for one in prompt if isinstance(prompt, list) else [prompt]:
            if isinstance(one, str):
                messages.append(_message(one))
    return messages


def system_instructions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the system instructions outside the conversation in the JSON *body* of a request."""
    return [part for name in _SYSTEM_KEYS for part in _parts(body.get(name))]


def tool_definitions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools in the JSON *body* of a request. Tools that the provider runs keep all their fields."""
    config = body.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else body.get("tools")
    definitions = [_tool(each) for one in _objects(tools) for each in _declared(one)]
    return definitions + [_tool({"type": "function", **one}) for one in _objects(body.get("functions"))]


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
        definition = {"type": "function", "name": str(tool["name"]), "description": tool.get("description")}
        return {**definition, "parameters": schema} if schema is not None else definition
    tool_type = kind if isinstance(kind, str) else next(iter(tool), "tool")
    return {**tool, "type": tool_type, "name": str(tool.get("name", tool_type))}


def _message(turn: Any) -> dict[str, Any]:
    if not isinstance(turn, dict):
        return {"role": "user", "parts": [*_parts(turn)]}
    kind = turn.get("type")
    if "role" not in turn and kind is not None:  # an item of a Responses request
        role = "tool" if kind in _RESULT_TYPES else "assistant"
        return {"role": role, "parts": [*_parts(turn)]}
    role = str(turn.get("role", "user")).lower()
    role = {"model": "assistant", "chatbot": "assistant", "developer": "system", "function": "tool"}.get(
        role, role
    )
    if role == "tool" and "content" in turn:
        id = turn.get("tool_call_id") or turn.get("tool_name") or turn.get("name")
        return {"role": role, "parts": [_result(id, turn["content"])]}
    parts: list[dict[str, Any]] = []
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(turn.get(name), str) and turn[name]:
            parts.append({"type": "reasoning", "content": turn[name]})
    for name in ("content", "parts", "message"):
        parts += _parts(turn.get(name))
    parts += [{"type": "blob", "modality": "image", "content": one} for one in _texts(turn.get("images"))]
    parts += [_part({"type": "function", **call}) for call in _objects(turn.get("tool_calls"))]
    name_field = {"name": turn["name"]} if isinstance(turn.get("name"), str) else {}
    return {"role": role, "parts": parts, **name_field}


def _parts(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, str):
            yield {"type": "text", "content": one}
        elif isinstance(one, dict):
            yield _part(one)


def _part(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    key = (
        kind if isinstance(kind, str) else next(iter(part), "unknown")
    )  # Gemini and Bedrock name a part by its key
    details = part[key] if isinstance(part.get(key), dict) else part
    if isinstance(part.get("text"), str) and (key in _TEXT_TYPES or part.get("thought")):
        return {"type": "reasoning" if part.get("thought") else "text", "content": part["text"]}
    if key in ("thinking", "reasoning") and isinstance(part.get("thinking"), str):
        return {"type": "reasoning", "content": part["thinking"]}
    if key in _CALL_TYPES and isinstance(details.get("name"), str):
        arguments = next((details[name] for name in ("arguments", "input", "args") if name in details), None)
        id = next(
            (one[name] for one in (details, part) for name in ("call_id", "id", "toolUseId") if name in one),
            None,
        )
        return {"type": "tool_call", "id": id, "name": details["name"], "arguments": arguments}
    said_back = [details[name] for name in ("content", "output", "response") if name in details]
    if key in _RESULT_TYPES and (said_back or key == "tool_result"):
        names = ("tool_use_id", "call_id", "toolUseId", "id", "name")
        id = next((details[name] for name in names if details.get(name) is not None), None)
        return _result(id, said_back[0] if said_back else None)
    if key in _DEFINED_TYPES:
        return {"type": "unknown", "value": part}
    return _media(key, details) or {**part, "type": key}


def _result(id: object, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": None if id is None else str(id), "response": response}


def _media(key: str, fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return the part for an image, a sound or a document, or ``None`` if *fields* is not a known one."""
    url, source = fields.get("image_url") or fields.get("url"), fields.get("source")
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
    for name, data_key in (("inlineData", "data"), ("fileData", "fileUri")):
        if key == name and isinstance(fields.get(data_key), str):
            mime = fields.get("mimeType")
            modality = str(mime).partition("/")[0]
            if data_key == "data":
                return {"type": "blob", "modality": modality, "mime_type": mime, "content": fields["data"]}
            return {"type": "uri", "modality": modality, "mime_type": mime, "uri": fields["fileUri"]}
    return None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


# ------------------------------------------------------------------------------------ otel
# OpenTelemetry spans and metrics of observed exchanges, after the GenAI conventions.


_log = logging.getLogger("crosswalk.observe")
_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES: Final = {
    **dict.fromkeys(("", "NO_CONTENT", "FALSE"), (False, False)),
    **dict.fromkeys(("SPAN_ONLY", "TRUE"), (True, False)),
    "EVENT_ONLY": (False, True),
    "SPAN_AND_EVENT": (True, True),
}
"""Whether spans, and whether events contain the messages, by the value of the variable."""
_EVENT_NAME: Final = "gen_ai.client.inference.operation.details"
_OPTION_NAMES: Final = {
    **{name: option_names(name) for name in ("temperature", "frequency_penalty", "presence_penalty", "seed")},
    "top_p": (*option_names("top_p"), "p"),
    "top_k": (*option_names("top_k"), "k"),
    "max_tokens": (*option_names("max_tokens"), "maxTokens", "max_new_tokens"),
}
"""The names of each attribute of the conventions: those of the request tables, and of formats that only servers speak."""
_INTEGER_OPTIONS: Final = ("seed", "max_tokens")
_OPTION_GROUPS: Final = ("options", "generationConfig", "inferenceConfig", "parameters")
_STRUCTURE_FIELDS: Final = frozenset({"finish_reason", "id", "mime_type", "modality", "name", "role", "type"})
"""Fields of messages and their parts that hold no content."""
_STOP_KEYS: Final = option_names("stop")
_COUNTS: Final = option_names("n")
_OUTPUT_TYPES: Final = {
    **dict.fromkeys(("json_object", "json_schema", "application/json", "json"), "json"),
    **dict.fromkeys(("text", "text/plain"), "text"),
}
"""The conventions' word for a requested format, by the words of the dialects."""
_PATHS: Final = {
    name: [tuple(path.split(".")) for path in paths if not path.endswith(".type")]
    for name, paths in option_paths().items()
}
_FORMAT_PATHS: Final = (*_PATHS["response_format"], ("format",))
_WORD_PATHS: Final = (*_FORMAT_PATHS, *_PATHS["reasoning_effort"], *_PATHS["previous_response_id"])
_NAME_GROUPS: Final = (_OPTION_GROUPS, _STOP_KEYS, _COUNTS, *_OPTION_NAMES.values())
_NAMES: Final = frozenset().union(*_NAME_GROUPS, (path[0] for path in _WORD_PATHS))
"""The keys of a request below which an attribute is looked for."""


class OpenTelemetrySink:
    """A sink that creates a client span for each call, and records the metrics.

    The span begins in the thread of the request. Its parent is the current span there, and it is the current span while the
    request is sent. All attempts that an SDK makes for one call share one span, with ``http.request.resend_count``.

    Args:
        tracer_provider: creates the tracer, or ``None`` for the global provider.
        meter_provider: creates the metrics, or ``None`` for the global provider.
        logger_provider: creates the events, or ``None`` for the global provider.
        content: whether spans contain the messages. ``None`` reads the environment variable
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` (``SPAN_ONLY``, ``EVENT_ONLY``, ``SPAN_AND_EVENT`` or
            ``NO_CONTENT``, the default). Events are created only for the messages.
        upload: called with the attributes that hold the messages, as plain JSON by name, before they are recorded. It
            returns the attributes to record in their place, such as the address of an upload. If it fails, the span
            has no messages.
        content_limit: the maximum characters of each text in these attributes, and of the base64 of each image, or
            ``None`` for no limit. The rest is cut off, and the JSON stays valid.

    Attributes:
        needs: ``"facts"``, or ``"everything"`` for spans or events with messages. See
            :class:`~crosswalk_observe.Watcher`.

    Raises:
        CrosswalkError: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        *,
        content: bool | None = None,
        upload: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
        content_limit: int | None = None,
    ) -> None:
        self._telemetry = ClientTelemetry("crosswalk.observe", tracer_provider, meter_provider)
        self._in_spans, self._in_events = _captures() if content is None else (content, False)
        self.needs = "everything" if self._in_spans or self._in_events else "facts"
        self._logger_provider = logger_provider
        self._upload = upload
        self._content_limit = content_limit

    def __call__(self, record: ObservedExchange) -> None:
        """Create the span and the metrics of *record*."""
        common_attributes = _common_attributes(
            record.operation, record.provider, record.host, record.port, record.request.model
        )
        span = self._telemetry.start(
            common_attributes, _request_attributes(record.request.options), record.began
        )
        self._end(span, record.began, record.provider, common_attributes, record)

    def started(self, exchange: WatchedExchange) -> _SpanOperation:
        """Begin the span of a call, in the thread of its request."""
        site = exchange.site
        common_attributes = _common_attributes(
            site.operation, site.providers[0], site.host, site.port, exchange.model
        )
        span = self._telemetry.start(common_attributes, _request_attributes(exchange.options), exchange.began)
        end = partial(self._end, span, exchange.began, site.providers[0], common_attributes)
        return _SpanOperation(span, end)

    def _end(
        self,
        span: Span,
        began: datetime,
        provider: str,
        common: dict[str, Any],
        record: ObservedExchange | None,
    ) -> None:
        """End *span*, begun with the attributes *common*. The answer may show another provider than the address did."""
        if record is None:
            span.end()
            return
        attributes: dict[str, Any] = {"crosswalk.exchange.id": record.id}
        labels = record.labels
        if labels.session:
            attributes["session.id"] = attributes["gen_ai.conversation.id"] = labels.session
        if labels.user:
            attributes["user.id"] = labels.user
        if labels.tags:
            attributes["crosswalk.tags"] = labels.tags
        if record.is_stream:
            attributes["gen_ai.request.stream"] = True
        if record.status is not None:
            attributes["http.response.status_code"] = record.status
        if record.resend_count:
            attributes["http.request.resend_count"] = record.resend_count
        if record.is_stream and record.time_to_first_chunk is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = record.time_to_first_chunk.total_seconds()
        if record.cost is not None:
            attributes["gen_ai.usage.cost"] = float(record.cost.amount)
        for kind, count in record.tokens.items():
            attributes[f"gen_ai.usage.{kind}_tokens"] = count
        common_attributes = common
        if record.provider != provider:
            common_attributes = {
                **common,
                "gen_ai.provider.name": otel_provider_name(record.provider or "_OTHER"),
            }
        try:
            if record.gives_answer and (self._in_spans or self._in_events):
                content = self._upload(_content_attributes(record))
                if (limit := self._content_limit) is not None:
                    list_names = [name for name, value in content.items() if isinstance(value, list)]
                    content = {**content, **{name: _cut(content[name], limit) for name in list_names}}
                if self._in_spans:
                    attributes |= {name: _text(value) for name, value in content.items()}
                if self._in_events:
                    response_attributes = {} if record.response is None else otel_attributes(record.response)
                    options = _request_attributes(record.request.options)
                    self._emit(span, {**common_attributes, **options, **response_attributes, **content})
        finally:
            end_time = record.began + record.duration
            self._telemetry.end(
                span,
                common_attributes,
                record.response,
                record.error,
                said=attributes,
                took=end_time - began,
                ended=end_time,
                chunk_times=record.chunk_times if record.is_stream else (),
            )

    def _emit(self, span: Span, attributes: dict[str, Any]) -> None:
        from opentelemetry._logs import LogRecord, get_logger
        from opentelemetry.trace import set_span_in_context

        logger = get_logger("crosswalk.observe", __version__, self._logger_provider, SCHEMA_URL)
        logger.emit(
            LogRecord(event_name=_EVENT_NAME, attributes=attributes, context=set_span_in_context(span))
        )


class _SpanOperation:
    """The span of a call, current while a request is sent."""

    def __init__(self, span: Span, end: Callable[[ObservedExchange | None], None]) -> None:
        self._span = span
        self.end = end

    def current(self) -> _CurrentSpan:
        return _CurrentSpan(self._span)


class _CurrentSpan:
    """The block in which *span* is current. Unlike OpenTelemetry's, it never notes an error, and it is quicker."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> None:
        import opentelemetry.context
        import opentelemetry.trace

        self._token = opentelemetry.context.attach(opentelemetry.trace.set_span_in_context(self._span))

    def __exit__(self, *error: object) -> None:
        import opentelemetry.context

        opentelemetry.context.detach(self._token)


def _common_attributes(
    operation: str, provider: str, host: str, port: int, model: str | None
) -> dict[str, Any]:
    """Return the attributes that spans and metrics share."""
    common: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": otel_provider_name(provider or "_OTHER"),
        "server.address": host,
        "server.port": port,
    }
    return common if model is None else {**common, "gen_ai.request.model": model}


def _captures() -> tuple[bool, bool]:
    word = os.environ.get(_VARIABLE, "").strip().upper()
    if word not in _CAPTURES:
        _log.warning("%s has an unknown value; messages will not be recorded", _VARIABLE)
    return _CAPTURES.get(word, (False, False))


def _request_attributes(options: Any) -> dict[str, Any]:
    """Return the *options* of a request that the conventions name."""
    attributes: dict[str, Any] = {}
    if _NAMES.isdisjoint(options):
        return attributes
    groups = [options[name] for name in _OPTION_GROUPS if isinstance(options.get(name), dict)]
    for group in (*groups, options):
        for word, names in _OPTION_NAMES.items():
            for value in (group[name] for name in names if name in group):
                if type(value) is int or (type(value) is float and word not in _INTEGER_OPTIONS):
                    attributes[f"gen_ai.request.{word}"] = value
        for name in _STOP_KEYS:
            stops = [group[name]] if isinstance(group.get(name), str) else group.get(name)
            if isinstance(stops, list) and all(isinstance(one, str) for one in stops):
                attributes["gen_ai.request.stop_sequences"] = tuple(stops)
        for count in (group[name] for name in _COUNTS if name in group):
            if type(count) is int and count != 1:
                attributes["gen_ai.request.choice.count"] = count
    format_word = _first(options, *_FORMAT_PATHS, *((*path, "type") for path in _FORMAT_PATHS))
    words = {
        "gen_ai.output.type": _OUTPUT_TYPES.get(format_word),
        "gen_ai.request.reasoning.level": _first(options, *_PATHS["reasoning_effort"]),
        "gen_ai.request.previous_response.id": _first(options, *_PATHS["previous_response_id"]),
    }
    return attributes | {name: word for name, word in words.items() if word is not None}


def _first(options: Any, *paths: tuple[str, ...]) -> Any:
    """Return the first word at one of *paths*."""
    return next((word for path in paths if isinstance(word := look_up(options, path), str)), None)


def _content_attributes(record: ObservedExchange) -> dict[str, Any]:
    body = {} if record.request.body is None else load_json(record.request.body)
    attributes = {
        "gen_ai.system_instructions": system_instructions(body),
        "gen_ai.input.messages": input_messages(body),
        "gen_ai.tool.definitions": tool_definitions(body),
        "gen_ai.output.messages": [] if record.response is None else otel_output_messages(record.response),
    }
    return {name: value for name, value in attributes.items() if value}


def _cut(value: Any, limit: int, uncut: Collection[str] = _STRUCTURE_FIELDS) -> Any:
    """Return *value* with each text in it cut to *limit* characters, except the fields *uncut* of messages and parts."""
    if isinstance(value, list):
        return [_cut(item, limit, uncut) for item in value]
    if isinstance(value, Mapping):
        return {
            name: item if name in uncut else _cut(item, limit, uncut if name == "parts" else ())
            for name, item in value.items()
        }
    return value[:limit] if isinstance(value, str) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode()
