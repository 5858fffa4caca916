"""Builds a provider's HTTP request from a canonical request, and the chat dialect's for every server that takes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, count
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

import attrs

from crosswalk.formats.chat_table import CHAT_SERVER, server_rows
from crosswalk.formats.reading import ClientRequest, fields_with_names, table_of
from crosswalk.formats.tables import CLIENT_TOOLS, named_at
from crosswalk.plugin.hooks import CallIds
from crosswalk.plugin.registry import Mapper, Registry, registry as default_registry
from crosswalk.request import (
    Adaptation,
    AdaptationKind,
    ChatRequest,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    Turn,
    UnsupportedRequestError,
)
from crosswalk.service.model_fit import (
    built,
    fit,
    folded,
    is_off,
    naming_provider,
    value_at,
    with_fitting_schemas,
)
from crosswalk.service.turns import (
    Drops,
    are_texts,
    arguments_text,
    arguments_wrapped,
    content_parts,
    data_url,
    details_of,
    hosted_fields,
    is_of,
    limits_of,
    lost_marks,
    mark_behind,
    media_type_of,
    message_of,
    part_marks,
    put_options,
    reasoning_of,
    refusal_of,
    sentences_added,
    spellings_of,
    text_of,
    unsaid,
    unsupported_part,
    with_extra_options,
    with_files_told,
    with_results_shown,
    without_silence,
    written_mark,
)
from crosswalk.service.way_back import (
    not_sent,
    own_fields,
    own_items,
    put_fields,
    with_call_names,
    with_fitting_ids,
    with_own_parts,
    with_whole_rounds,
)
from crosswalk.types.json import FrozenObject, as_json_object, dump_json, thaw
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    TextPart,
    ToolCall,
    VideoPart,
)
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import CitationRef, Segment, SegmentType, altered
from crosswalk.wire.options import OPTIONS, RequestRow, RequestTable, put

# ----------------------------------------------------------------------------- openai chat
# Requests in OpenAI's chat dialect: the building block for every server that takes them.
#
# Facts: OpenAI's reference of ``POST /v1/chat/completions``. Provider document "OpenAI Chat Completions".


@attrs.frozen(kw_only=True)
class OpenAIChatStyle:
    """The differences between a server's requests and OpenAI's.

    Attributes:
        path: the path of the endpoint.
        table: all that the server takes, without its *options*.
        options: the server's names of options: of those that OpenAI's API spells otherwise, and of those that it lacks.
        include_usage: whether a stream must ask for the token counts (``stream_options``).
        reasoning: the field of an assistant's message that takes reasoning, or ``None`` if *more* handles it.
        call_reasoning: the reasoning of a message that calls tools and has none, for servers that refuse it without any.
        refusal: whether an assistant's message has a field for the reason of declining. Otherwise the reason is its text.
        takes_empty: whether it may be empty. Otherwise an empty message between two of the user gets a text that states
            this, and any other is left out.
        null_content: whether the content of an assistant's message may be null if it has calls, or else is an empty text.
        takes_any_arguments: whether the arguments of a call may be any text. An engine that renders them with a template
            parses them, and refuses a conversation with a truncated call: it gets ``{"INVALID_JSON": text}``.
        rows: the server's rows of options, where its words differ, and of the parts that it takes besides. The function
            ``write`` of a row gets what the request has: a ``ToolChoice`` or ``NamedTool``, a ``ReasoningEffort``, or the
            ``ResponseFormat``. A named tool and a format without it have OpenAI's form.
        lacks: the places of :data:`crosswalk.wire.options.PLACES` that the server does not have, though its *table* does.
        is_strict: whether it refuses fields that it does not know.
        hosted_tools: for each kind of tool that the server runs itself, its item of ``tools``.
        part: writes a part of a message that only this server writes so, or returns ``None`` for any other part.
        more: adds the server's further fields to the message of a turn, or ``None`` for nothing.
        arrange: puts the messages into an order that the server takes.
        unsupported: the options of a request that the API does not have, and why.
    """

    path: str = "/v1/chat/completions"
    table: RequestTable = CHAT_SERVER
    options: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    include_usage: bool = True
    reasoning: str | None = "reasoning_content"
    call_reasoning: str = ""
    refusal: bool = False
    takes_empty: bool = True
    null_content: bool = True
    takes_any_arguments: bool = True
    rows: tuple[RequestRow, ...] = ()
    lacks: tuple[str, ...] = ()
    is_strict: bool = False
    hosted_tools: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, hash=False)
    part: Callable[[ContentPart], dict[str, Any] | None] = lambda _: None
    more: Callable[[Turn, ChatRequest, dict[str, Any]], object] | None = None
    arrange: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
    unsupported: Mapping[str, str] = attrs.field(factory=dict, hash=False)

    def __attrs_post_init__(self) -> None:
        own_paths = {row.path for row in self.table.rows}
        for row in self.rows:
            is_fixed = row.place not in OPTIONS and row.place.startswith(_FIXED_PLACES)
            if is_fixed and row.path not in own_paths:
                raise ValueError(
                    f"rows: {row.place} has OpenAI's field, and none at {row.path}: change the body in build_request"
                )


_FIXED_PLACES: Final = ("tool.", "format.", "message.", "call", "result", "reasoning", "refusal")


def build_openai_chat_request(request: ChatRequest, style: OpenAIChatStyle | None = None) -> HTTPRequest:
    """Return *request* as a request in OpenAI's chat dialect.

    Args:
        request: the canonical request.
        style: the differences of the server, or ``None`` for OpenAI's own form.

    Raises:
        UnsupportedRequestError: a message holds a part that the API cannot take, or the conversation has no content.
    """
    style = style or OpenAIChatStyle()
    drops = Drops(request)
    supported_request = request
    for option, reason in style.unsupported.items():
        drops.given(request, option, reason=reason)
        empty_value: Any = () if isinstance(getattr(request, option), tuple) else None
        supported_request = attrs.evolve(supported_request, **{option: empty_value})
    options = (*style.options.items(),)
    table = _table_of_server(style.table, (*style.rows,), options, (*style.lacks,), style.is_strict)
    messages = [*_messages(supported_request, style, table, drops)]
    if not style.takes_empty:
        messages = [*without_silence(messages, _is_empty)]
    if not messages:
        raise UnsupportedRequestError("the conversation has no content", options=["messages"])
    body: dict[str, Any] = {"model": request.model, "messages": style.arrange(messages)}
    rows = {name: table.row(name) for name in ("tool_choice", "reasoning_effort", "response_format")}
    lacking_options = [name for name, row in rows.items() if row is None]
    drops.given(supported_request, *lacking_options, reason=f"{table.label} has no such option")
    choice_row, format_row = rows["tool_choice"], rows["response_format"]
    named_choice = None
    if isinstance(supported_request.tool_choice, NamedTool) and choice_row and choice_row.write is None:
        named_choice = openai_choice(supported_request)
    put_options(body, supported_request, table, drops, but=("tool_choice",) if named_choice else ())
    tools = [openai_tool(tool) for tool in supported_request.tools]
    for hosted_tool in supported_request.hosted_tools:
        item = dict(style.hosted_tools[hosted_tool.kind])
        if item:  # the server's own, of which no table knows more
            tools.append(item)
            hosted_fields(hosted_tool, table.with_rows(RequestRow("", hosted_tool.kind)), drops)
        elif (row := table.row(hosted_tool.kind)) is not None:
            put(body, row.path, hosted_fields(hosted_tool, table, drops))
        else:  # a plugin names it, and neither its item nor a row says how it is asked for
            drops.add("hosted_tools", f"the plugin does not say how to ask for {hosted_tool.kind}")
    if tools:
        body["tools"] = tools
    if choice_row and isinstance(named_choice, dict):
        put(body, choice_row.path, _nested(named_choice))
    wanted = supported_request.response_format
    if format_row and wanted is not None:
        form = format_row.written(wanted) if format_row.write else _nested(openai_format(wanted))
        if form is None:
            drops.add("response_format", f"{table.label} has no form for it")
        else:
            put(body, format_row.path, form)
    if request.stream:
        body["stream"] = True
        if style.include_usage:
            body["stream_options"] = {"include_usage": True}
    spellings = spellings_of(table)
    return HTTPRequest(style.path, body, adaptations=drops.found(), spellings=spellings, table=table)


@lru_cache(maxsize=256)
def _table_of_server(
    table: RequestTable,
    rows: tuple[RequestRow, ...],
    options: tuple[tuple[str, str], ...],
    lacks: tuple[str, ...],
    is_strict: bool,
) -> RequestTable:
    """Return all that a server takes. Most plugins state the same for each request, and its table is made once."""
    own_rows = (*rows, *server_rows(dict(options)))
    removed_places = (*(row.place for row in own_rows if row.place), *lacks)
    return table.with_rows(*own_rows, without=removed_places, is_strict=is_strict)


def _nested(item: dict[str, Any]) -> dict[str, Any]:
    """Return *item*, as the Responses API has it, in the form of Chat Completions: its fields under the name of its type."""
    fields = {name: value for name, value in item.items() if name != "type"}
    return {"type": item["type"], **({item["type"]: fields} if fields else {})}


def openai_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return *tool* in OpenAI's form, which Ollama takes as well."""
    fields = tool_fields(tool)
    if tool.is_custom and fields.get("format", {}).get("type") == "grammar":
        fields["format"] = _nested(fields["format"])
    return _nested({"type": "custom" if tool.is_custom else "function", **fields})


def openai_choice(request: ChatRequest) -> str | dict[str, Any] | None:
    """Return the choice of a tool in *request* as the Responses API writes it, or ``None`` without one."""
    choice = request.tool_choice
    if not isinstance(choice, NamedTool):
        return None if choice is None else choice.value
    is_custom = any(tool.is_custom and tool.name == choice.name for tool in request.tools)
    return {"type": "custom" if is_custom else "function", "name": choice.name}


def openai_format(wanted: ResponseFormat) -> dict[str, Any]:
    """Return *wanted* as the Responses API writes it."""
    if wanted.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", **details_of(wanted, "responses", "text.format[json_schema]", "format")}


def tool_fields(tool: ToolDefinition, parameters: str = "parameters") -> dict[str, Any]:
    """Return the definition of *tool*, with the schema of its arguments under the key *parameters*."""
    fields: dict[str, Any] = {"name": tool.name}
    if not tool.is_custom:
        fields[parameters] = thaw(tool.parameters)
    elif tool.input_format is not None:
        fields["format"] = thaw(tool.input_format)
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return fields


def _messages(
    request: ChatRequest, style: OpenAIChatStyle, table: RequestTable, drops: Drops
) -> Iterator[dict[str, Any]]:
    marks = part_marks(request, table)
    for turn, shown_turn in with_results_shown(request.messages):
        message = _message(shown_turn, style, marks, table)
        mark = None if turn is None else mark_behind(request, turn)
        if mark is not None and message["content"] and (mark_fields := written_mark(mark, table)):
            content = message["content"]
            message["content"] = [{"type": "text", "text": content}] if isinstance(content, str) else content
            message["content"][-1] |= mark_fields
        elif mark is not None and turn is not None and table.row("cache.mark") is not None:
            lost_marks(request, turn, drops)  # behind calls alone
        if style.more is not None and turn is not None:
            style.more(turn, request, message)
        yield message


def _is_empty(wire_message: dict[str, Any]) -> bool:
    return wire_message["role"] == "assistant" and not (
        wire_message["content"] or "tool_calls" in wire_message or "refusal" in wire_message
    )


def _message(
    turn: Turn, style: OpenAIChatStyle, marks: Mapping[int, dict[str, Any]], table: RequestTable
) -> dict[str, Any]:
    """Return *turn* as a message."""
    message = message_of(turn)
    wire_message: dict[str, Any] = {
        "role": message.role.value,
        "content": _content(message, style, marks, table),
    }
    if message.name is not None and message.role is not Role.TOOL and table.row("message.name") is not None:
        wire_message["name"] = message.name
    if message.tool_calls:
        wire_message["tool_calls"] = [_call(call, style) for call in message.tool_calls]
    if message.tool_call_id is not None:
        wire_message["tool_call_id"] = message.tool_call_id
    if message.role is Role.ASSISTANT:
        refusal = refusal_of(turn)
        if refusal and style.refusal:
            wire_message["refusal"] = refusal
        elif refusal:
            wire_message["content"] = text_of(turn)
        may_be_null = style.null_content and (message.tool_calls or "refusal" in wire_message)
        if wire_message["content"] is None and not may_be_null:
            wire_message["content"] = ""
        reasoning = reasoning_of(turn) or (style.call_reasoning if message.tool_calls else "")
        if style.reasoning is not None and reasoning:
            wire_message[style.reasoning] = reasoning
        if isinstance(turn, ChatResponse):
            _add_own(wire_message, turn)
    return wire_message


def _call(call: ToolCall, style: OpenAIChatStyle) -> dict[str, Any]:
    if call.is_custom:  # no other provider receives one
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    arguments = call.arguments if style.takes_any_arguments else arguments_text(call)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _add_own(wire_message: dict[str, Any], turn: ChatResponse) -> None:
    """Add to *wire_message* the media, the citations and the state of *turn*, as its provider sent them."""
    citation_items: list[dict[str, Any] | None] = []
    for segment in turn.segments:
        metadata = segment.metadata
        if segment.type is SegmentType.MEDIA and metadata.get("type") == "audio":
            if "id" in metadata:  # of several pieces one has it
                wire_message["audio"] = {"id": metadata["id"]}
        elif segment.type is SegmentType.MEDIA:
            wire_message.setdefault("images", []).append(
                {"type": "image_url", "image_url": {"url": segment.content}}
            )
        elif segment.type is SegmentType.CITATION and not metadata:
            citation_items.append(_annotation(segment))
    if annotations := own_items(turn, citation_items, inside="annotations"):
        wire_message["annotations"] = annotations
    fields = own_fields(turn)
    fields.pop("annotations", None)
    put_fields(wire_message, fields)


def _annotation(segment: Segment) -> dict[str, Any]:
    citation: dict[str, Any] = {"title": segment.content}
    ref = next(
        (annotation for annotation in segment.annotations if isinstance(annotation, CitationRef)),
        CitationRef(),
    )
    citation["url"] = ref.source
    if ref.span is not None:
        citation["start_index"], citation["end_index"] = ref.span
    return {"type": "url_citation", "url_citation": citation}


def _content(
    message: ChatMessage, style: OpenAIChatStyle, marks: Mapping[int, dict[str, Any]], table: RequestTable
) -> str | list[dict[str, Any]] | None:
    if message.content is None or isinstance(message.content, str):
        return message.content
    parts = content_parts(message)
    if table.row("part.file") is None:
        parts = tuple(with_files_told(parts))
    return [{**(style.part(part) or _part(part, table)), **marks.get(id(part), {})} for part in parts] or ""


_PLACES: Mapping[type, str] = MappingProxyType(
    {ImagePart: "part.image", AudioPart: "part.audio", VideoPart: "part.video", FilePart: "part.file"}
)


def _part(part: ContentPart, table: RequestTable) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    is_kept = isinstance(part, FilePart) and part.id is not None
    if table.row("part.file_id" if is_kept else _PLACES[type(part)]) is None:
        raise unsupported_part(part, "cannot be sent to this API")
    if isinstance(part, ImagePart):
        detail_field = {} if part.detail is None else {"detail": part.detail}
        return {"type": "image_url", "image_url": {"url": data_url(part), **detail_field}}
    if isinstance(part, FilePart) and part.id is not None:
        name_field = {"filename": part.name} if part.name else {}
        return {"type": "file", "file": {"file_id": part.id, **name_field}}
    if isinstance(part, VideoPart):
        return {"type": "video_url", "video_url": {"url": data_url(part)}}
    if part.data is None:
        raise unsupported_part(part, "must be given as data")
    if isinstance(part, AudioPart):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": _format(part)}}
    file = {"file_data": data_url(part), "filename": part.name or "file"}
    return {"type": "file", "file": file}


def _format(part: AudioPart | FilePart) -> str:
    """Return ``audio/x-wav`` as ``wav``."""
    name = media_type_of(part).partition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav"}.get(name, name)


# -------------------------------------------------------------------------------- building
# Builds a provider's HTTP request from a canonical request.


T = TypeVar("T")

OnUnsupported: TypeAlias = Literal["raise", "drop"]


def build_http_request(
    request: ChatRequest,
    provider: str,
    *,
    on_unsupported: OnUnsupported = "raise",
    registry: Registry | None = None,
    model_class: str | None = None,
) -> HTTPRequest:
    """Return the HTTP request that would be sent to *provider* for *request*, without credentials. Nothing is sent.

    Args:
        request: the canonical request. It names a model.
        provider: the provider id.
        on_unsupported: ``"raise"`` for an option that the provider cannot express, or ``"drop"`` it. The result's
            ``adaptations`` name it then, as they always name hints and parts of earlier turns that the provider does not
            accept: those never refuse the request.
        registry: the registry of providers, or ``None`` for the installed ones.
        model_class: the class or the model that gives the rules, or ``None`` to look it up by the model's name.

    Raises:
        UnsupportedRequestError: the provider or the model cannot take the request, or no model is named.
        ConfigurationError: there is no such model class, or your file of model classes is broken.
        UnknownProviderError: there is no such provider. PluginError: it is broken.
    """
    known_registry = default_registry if registry is None else registry
    return build(request, known_registry.mapper(provider), on_unsupported, model_class=model_class)[0]


def build(
    request: ChatRequest,
    mapper: Mapper,
    on_unsupported: OnUnsupported,
    *,
    model: str | None = None,
    base_url: str | None = None,
    takes_media: bool = True,
    model_class: str | None = None,
) -> tuple[HTTPRequest, bytes]:
    """Return the HTTP request and its body's bytes. See :func:`build_http_request`.

    Args:
        request: the canonical request.
        mapper: the provider's mapper.
        on_unsupported: as for :func:`build_http_request`.
        model: the model to use if the request names none.
        base_url: the address of the server, or ``None`` if it is not known yet.
        takes_media: whether the model takes images, sounds and files.
        model_class: as for :func:`build_http_request`.

    Raises:
        UnsupportedRequestError, ConfigurationError, PluginError: see :func:`build_http_request`.
    """
    provider = mapper.provider
    request = altered(request, model=request.model or model or None, provider=provider)
    if mapper.build_request is None:
        raise UnsupportedRequestError("its plugin builds no requests", provider=provider)
    if request.model is None:
        raise UnsupportedRequestError(
            f"no model is named; name it with its provider, '{provider}:MODEL'",
            provider=provider,
            options=["model"],
        )
    access = mapper.info.access
    is_official = access is not None and access.base_url == base_url
    build_fitted = partial(_fitted, mapper=mapper, is_official=is_official, takes_media=takes_media)
    own_options = request.provider_options.get(provider)
    extra_fields = thaw(own_options) if own_options else {}
    request, changes = with_fitting_schemas(request, mapper, model_class)
    places, names = fitting_names(request, mapper)
    if names:
        request = _with_tool_names(request, names)
        extra_fields = fields_with_names(extra_fields, lambda name: names.get(name, name))
        changes = (*changes, *(_renamed_tool(places[name], name, sent) for name, sent in names.items()))
    if (model_fit := fit(request, mapper, model_class)) is not None:
        request = model_fit.request
    http_request = request.built_by(build_fitted)
    effort = request.reasoning_effort
    if effort is not None and (path := _other_effort(http_request, extra_fields, effort)) is not None:
        request = altered(request, reasoning_effort=None)
        http_request = request.built_by(build_fitted)
        reason = f"provider_options sets {path}"
        http_request = http_request.adapted(Adaptation.dropped("reasoning_effort", reason, asked=effort))
    if model_fit is not None:
        http_request = model_fit.finished(http_request)
    http_request = http_request.adapted(*changes)
    if names:
        http_request = attrs.evolve(http_request, tool_names={sent: name for name, sent in names.items()})
    refusals = [one for one in http_request.adaptations if one.refuses]
    if refusals and on_unsupported == "raise":
        refusal_text = "; ".join(f"{one.field} ({one.reason})" for one in refusals)
        options = [one.field for one in refusals]
        raise UnsupportedRequestError(f"it cannot express {refusal_text}", provider=provider, options=options)
    if extra_fields:
        body = _merged(
            http_request.body,
            extra_fields,
            lambda: built(_bare(request), mapper).body,
            (provider,),
            http_request.spellings,
        )
        http_request = attrs.evolve(http_request, body=body)
    try:
        content = dump_json(http_request.body)
    except TypeError as error:
        # Its message is orjson's own and quotes nothing: a lone surrogate in a text, thousands of digits.
        raise UnsupportedRequestError(f"the request is not JSON: {error}", provider=provider) from None
    if sentences := sentences_added(http_request.body, content, partial(_said, request)):
        adapted_fields = {one.field for one in http_request.adaptations}
        added_adaptations = (
            Adaptation(place, "added", "nobody has said it", sent=sentence)
            for place, sentence in sentences.items()
            if place not in adapted_fields
        )
        http_request = http_request.adapted(*added_adaptations)
    return http_request.adapted(*arguments_wrapped(request, content)), content


def _said(request: ChatRequest) -> Any:
    """Return all that the caller of *request* says."""
    if isinstance(request, ClientRequest):
        return request.said
    return [message_of(turn).text for turn in request.messages]


def fitting_names(request: ChatRequest, mapper: Mapper) -> tuple[dict[str, str], dict[str, str]]:
    """Return the first place of each name of a tool in *request*, and new names for those that are not taken."""
    pattern = mapper.info.call_names
    if pattern is None:
        return {}, {}
    places = _named_tools(request)
    own_options = request.provider_options.get(mapper.provider)
    if own_options:
        own_place = f"provider_options[{mapper.provider}]"
        fields_with_names(thaw(own_options), lambda name: places.setdefault(name, own_place))
    return places, _fitting_names(places, pattern, (tool.kind for tool in request.hosted_tools))


def _named_tools(request: ChatRequest) -> dict[str, str]:
    """Return the name of each tool in *request*, declared, chosen or called, with the first place that names it."""
    places: dict[str, str] = {}
    for number, tool in enumerate(request.tools):
        places.setdefault(tool.name, f"tools[{number}].name")
    for path, tools in request.instead.items() if isinstance(request, ClientRequest) else ():
        for tool in tools:
            places.setdefault(tool.name, path)
    if isinstance(request.tool_choice, NamedTool):
        places.setdefault(request.tool_choice.name, "tool_choice")
    for number, turn in enumerate(request.messages):
        for at, call in enumerate(message_of(turn).tool_calls or ()):
            places.setdefault(call.name, f"messages[{number}].tool_calls[{at}].name")
    return places


def _fitting_names(names: Iterable[str], pattern: str, others: Iterable[str]) -> dict[str, str]:
    """Return a new name for each of *names* that does not match *pattern*: one of no other tool, nor of *others*.

    Each character except letters and digits becomes ``_``. If another tool has that name, letters made of the old name
    follow, the same in every request.
    """
    odd = [name for name in names if not re.fullmatch(pattern, name, re.ASCII)]
    taken = {*names, *others}
    fitting: dict[str, str] = {}
    for name in odd:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:63]
        plain = plain if re.fullmatch(pattern, plain) else f"_{plain}"
        longer = (f"{plain[:54]}_{CallIds().make(f'{name} {number}')[:8]}" for number in count())
        fitting[name] = next(made for made in chain([plain], longer) if made not in taken)
        taken.add(fitting[name])
    return fitting


def _with_tool_names(request: ChatRequest, names: Mapping[str, str]) -> ChatRequest:
    """Return *request* with the new names of tools in *names*, by their former ones.

    A result without a call before it stays: it goes out as text.
    """
    turns: dict[int, Turn] = {}
    called: set[str | None] = set()
    for turn in request.messages:
        message = message_of(turn)
        called.update(call.id for call in message.tool_calls or ())
        result = message.name if message.tool_call_id in called else None
        if result in names or any(call.name in names for call in message.tool_calls or ()):
            turns[id(turn)] = with_call_names(turn, names)
    return _with_said_names(request, names, turns)


def _with_said_names(
    request: ChatRequest, names: Mapping[str, str], turns: Mapping[int, Turn]
) -> ChatRequest:
    """Return *request* with new names of its tools, as if its caller had said them.

    Args:
        request: the request.
        names: the new names, by the former ones.
        turns: the turns with new names, by the ``id()`` of the former ones.
    """
    choice, more = request.tool_choice, request.extra_options
    allowed = {name: thaw(value) for name, value in more.items() if name == _ALLOWED_TOOLS}
    renamed: ChatRequest = altered(
        request,
        messages=tuple(turns.get(id(turn), turn) for turn in request.messages),
        tools=_tools_named(request.tools, names),
        tool_choice=NamedTool(names.get(choice.name, choice.name))
        if isinstance(choice, NamedTool)
        else choice,
        extra_options=FrozenObject(
            {**more, **fields_with_names(allowed, lambda name: names.get(name, name))}
        ),
    )
    if not isinstance(request, ClientRequest):
        return renamed
    return altered(
        renamed,
        asked=_with_said_names(request.asked, names, turns),
        said=fields_with_names(request.said, lambda name: names.get(name, name)),
        unread=tuple(
            attrs.evolve(one, value=named_at(one.place, one.value, lambda name: names.get(name, name)))
            for one in request.unread
        ),
        instead={path: _tools_named(tools, names) for path, tools in request.instead.items()},
    )


def _tools_named(tools: Iterable[ToolDefinition], names: Mapping[str, str]) -> tuple[ToolDefinition, ...]:
    return tuple(attrs.evolve(tool, name=names.get(tool.name, tool.name)) for tool in tools)


_ALLOWED_TOOLS: Final = "allowed_tools"


def _renamed_tool(place: str, name: str, sent: str) -> Adaptation:
    return Adaptation(place, "clamped", "the API takes no such name of a tool", asked=name, sent=sent)


def _fitted(request: ChatRequest, mapper: Mapper, *, is_official: bool, takes_media: bool) -> HTTPRequest:
    """Return the plugin's HTTP request for *request*, reduced to the parts, calls, ids and tools that the provider takes."""
    info = mapper.info
    request = _with_declared_arguments(request)
    sorted_request = request
    part_adaptations: tuple[Adaptation, ...] = ()
    numbers: Sequence[int | None] = ()
    is_plain = are_texts(request.messages)
    if not is_plain:
        sorted_request, part_adaptations = with_own_parts(
            request, info.way_back, is_official=is_official, takes_media=takes_media
        )
        request, numbers = naming_provider(with_whole_rounds, sorted_request, mapper.provider)
        if info.call_ids is not None:
            request = altered(request, messages=with_fitting_ids(request.messages, info.call_ids))
    foreign_tools = [tool for tool in request.hosted_tools if tool.kind not in info.hosted_tools]
    if foreign_tools:
        known_tools = tuple(tool for tool in request.hosted_tools if tool not in foreign_tools)
        request = altered(request, hosted_tools=known_tools)
    if request.tools and not info.way_back.takes_custom_calls:
        request = altered(request, tools=tuple(tool.as_function() for tool in request.tools))
    http_request = _with_numbers(built(request, mapper), numbers)
    http_request = naming_provider(partial(with_extra_options, http_request), request, mapper.provider)
    tool_adaptations = [
        Adaptation.dropped(option, f"the API runs no {tool.kind}", asked=tool.kind, refuses=True)
        for tool in foreign_tools
        for option in ("hosted_tools", *limits_of(tool))
    ]
    unsent_adaptations = (
        () if is_plain else not_sent(sorted_request, http_request.body, http_request.adaptations)
    )
    detail_adaptations = unsaid(sorted_request, table_of(http_request), http_request.adaptations)
    return http_request.adapted(
        *tool_adaptations, *part_adaptations, *unsent_adaptations, *detail_adaptations
    )


def _with_numbers(http_request: HTTPRequest, numbers: Sequence[int | None]) -> HTTPRequest:
    """Return *http_request*, whose plugin names turns by their positions in *numbers*, with the numbers there."""

    def numbered(adaptation: Adaptation) -> Adaptation:
        match = _TURN.match(adaptation.field)
        number = None if match is None or adaptation.kind is AdaptationKind.ADDED else numbers[int(match[1])]
        rest = adaptation.field[match.end() :] if match else ""
        return adaptation if number is None else attrs.evolve(adaptation, field=f"messages[{number}]{rest}")

    if not numbers or not http_request.adaptations:
        return http_request
    return attrs.evolve(http_request, adaptations=tuple(map(numbered, http_request.adaptations)))


_TURN: Final = re.compile(r"messages\[(\d+)\]")
_INSIDE: Mapping[str | None, str] = MappingProxyType(
    {kind: tool.inside for tools in CLIENT_TOOLS.values() for kind, tool in tools.items() if tool.inside}
)
"""The field of a call that holds the arguments, by the kind of the vendor's tool."""


def _with_declared_arguments(request: ChatRequest) -> ChatRequest:
    """Return *request* with the calls of vendors' tools, of other providers' answers, in the form that the tools declare.

    The items of Responses have those arguments in a separate field, with nulls and the client's own environment.
    """
    if not request.tools:
        return request
    fields = {tool.name: _INSIDE[tool.client_tool] for tool in request.tools if tool.client_tool in _INSIDE}
    if not fields:
        return request
    turns = (
        turn if is_of(turn, request) else _with_inner_arguments(turn, fields) for turn in request.messages
    )
    return altered(request, messages=tuple(turns))


def _with_inner_arguments(turn: Turn, fields: Mapping[str, str]) -> Turn:
    """Return *turn* with the arguments of the calls of the tools *fields* that are in the field of each."""
    message = message_of(turn)
    texts: dict[str, str] = {}
    for call in message.tool_calls or ():
        inner = (as_json_object(call.arguments) or {}).get(fields.get(call.name, ""))
        if isinstance(inner, dict):
            said = {key: value for key, value in inner.items() if value is not None}
            texts[call.id] = dump_json(said).decode()
    if not texts:
        return turn
    calls = [
        attrs.evolve(call, arguments=texts.get(call.id, call.arguments)) for call in message.tool_calls or ()
    ]
    message = attrs.evolve(message, tool_calls=calls)
    if not isinstance(turn, ChatResponse):
        return message
    segments = [
        attrs.evolve(part, content=texts.get(str(part.metadata.get("id")), part.content))
        if part.type is SegmentType.TOOL_CALL
        else part
        for part in turn.segments
    ]
    return attrs.evolve(turn, message=message, segments=segments)


_OTHER_EFFORT_PATHS: Mapping[str | None, tuple[str, ...]] = MappingProxyType(
    {
        "chat": ("reasoning.effort", "reasoning.max_tokens"),
        "messages": ("thinking.type", "thinking.budget_tokens"),
        "gemini": ("generationConfig.thinkingConfig.thinkingBudget",),
        "bedrock": (
            "additionalModelRequestFields.thinking.type",
            "additionalModelRequestFields.thinking.budget_tokens",
        ),
    }
)
"""The other ways to state the effort in each format, which no server takes beside the one that the plugin writes."""
_SWITCH_PATHS: Mapping[str | None, tuple[str, ...]] = MappingProxyType(
    {"chat": ("thinking.type", "enable_thinking")}
)
"""The switches that servers take beside an effort, if both are on."""


def _other_effort(
    http_request: HTTPRequest, extra_fields: Mapping[str, Any], effort: ReasoningEffort
) -> str | None:
    """Return the path at which *extra_fields* states another effort than *effort* of *http_request*, or ``None``."""
    table = table_of(http_request)
    key = None if table is None else table.key
    for path in _OTHER_EFFORT_PATHS.get(key, ()):
        value = value_at(extra_fields, path)
        if value is not None and value != value_at(http_request.body, path):
            return path
    is_none = effort is ReasoningEffort.NONE
    values = ((path, value_at(extra_fields, path)) for path in _SWITCH_PATHS.get(key, ()))
    return next((path for path, value in values if value is not None and (is_none or is_off(value))), None)


def _bare(request: ChatRequest) -> ChatRequest:
    """Return an empty request with the effort and the options of *request*.

    The fields that its body has nevertheless are the plugin's defaults, or follow from the effort.
    """
    return ChatRequest(
        "-",
        model="-",
        provider=request.provider,
        reasoning_effort=request.reasoning_effort,
        extra_options=request.extra_options,
        provider_options=request.provider_options,
    )


def _merged(
    body: dict[str, Any],
    extra_fields: dict[str, Any],
    defaults: Callable[[], Any],
    place: tuple[str, ...],
    spellings: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Merge *extra_fields* into *body*: objects key by key, lists by appending. *defaults* are replaced.

    A key in another spelling is the same key, and a tool that is in both is one tool. *place* is the path of
    *extra_fields*: the provider's id, and the names from there.

    Raises:
        UnsupportedRequestError: *extra_fields* has another value for a field of the request.
    """
    merged_body = dict(body)
    for extra_name, value in extra_fields.items():
        name = _known_as(extra_name, merged_body, spellings)
        old_value, value_place = merged_body.get(name), (*place, extra_name)
        if isinstance(old_value, dict) and isinstance(value, dict):
            merged_body[name] = _merged(old_value, value, partial(_inside, defaults, name), value_place)
        elif isinstance(old_value, list) and isinstance(value, list):
            merged_body[name] = (
                _with_tools(old_value, value, value_place) if name in _TOOL_KEYS else [*old_value, *value]
            )
        elif name in merged_body and old_value != value and _inside(defaults, name) != old_value:
            option = "provider_options" + "".join(f"[{part!r:.60}]" for part in value_place)
            raise UnsupportedRequestError(
                f"{option} contradicts the request", provider=place[0], options=[option]
            )
        else:
            merged_body[name] = value
    return merged_body


_TOOL_KEYS = ("tools", "functionDeclarations")
_VERSION = re.compile(r"(_preview)?(_?\d+)*$")


def _known_as(name: str, body: dict[str, Any], spellings: Mapping[str, str]) -> str:
    """Return the key of *body* for *name* if it has that in one of its *spellings*, else *name*."""
    if name in body:
        return name
    if spellings.get(name) in body:
        return spellings[name]
    return next((key for key in body if folded(key) == folded(name)), name)


def _with_tools(tools: list[Any], extra_tools: list[Any], place: tuple[str, ...]) -> list[Any]:
    """Return the *tools* of the request and *extra_tools* of them. A tool that is in both appears once."""
    merged_tools, others = [*tools], []
    for tool in extra_tools:
        for part in _parts(tool):
            index = next(
                (n for n, own_tool in enumerate(tools) if _identity(own_tool) == _identity(part)), None
            )
            if index is None:
                others.append(part)
            else:
                merged_tools[index] = _merged(merged_tools[index], part, dict, place)
    return [*merged_tools, *others]


def _parts(tool: Any) -> list[Any]:
    """Split *tool* into single tools: one with neither name nor type may be several, each under a separate key."""
    if isinstance(tool, dict) and "name" not in tool and "type" not in tool:
        return [{key: value} for key, value in tool.items()]
    return [tool]


def _identity(tool: Any) -> object:
    """Return the identity of *tool* among others: its name, else its type in any version, else its key."""
    if not isinstance(tool, dict):
        return object()
    for holder in (tool, *tool.values()):
        if isinstance(holder, dict) and "name" in holder:
            return "name", holder["name"]
    if "type" in tool:
        return "type", _VERSION.sub("", str(tool["type"]))
    return "key", [folded(key) for key in tool]


def _inside(defaults: Callable[[], Any], name: str) -> Any:
    default_value = defaults()
    return default_value.get(name) if isinstance(default_value, dict) else None
