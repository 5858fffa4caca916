"""Requests in the form of OpenAI's Responses. Facts: provider document "OpenAI Responses"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import attrs

from crosswalk.convert.form import WireForm
from crosswalk.request import HostedTool, HostedToolKind, NamedTool, ToolDefinition, Turn
from crosswalk.service.client_requests.chat import (
    answer_format,
    choice,
    custom_definition,
    definition,
    effort,
)
from crosswalk.service.client_requests.incoming import Incoming, Wants
from crosswalk.service.client_requests.reading import answer, incoming, take_neutral
from crosswalk.types.json import as_json_object, dump_json
from crosswalk.types.message import ChatMessage, ContentPart, ImagePart, Role, TextPart, ToolCall
from crosswalk.wire.chat import ROLES, read_source
from crosswalk.wire.fields import Fields, path_of, placed
from crosswalk.wire.options import STATE
from crosswalk.wire.responses import read_part

_ROLES: Final = {word: role for word, role in ROLES.items() if role is not Role.TOOL}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that call a tool of the client by name, and their field for the arguments."""
_CALL_IDS: Final = {
    "mcp_approval_response": ("approval_request_id",),
    "local_shell_call_output": ("call_id", "id"),
}
"""The fields with the id of a call in the items of its result, for those that have other ones than ``call_id``."""
_MADE: Final = ("reasoning", "compaction", "program", "program_output")
"""The items that only a model or its server makes, besides calls."""
_OUTPUT: Final = "_output"
"""The end of the type of an item with a result."""
_OF_ITEMS: Final = {"type", "id", "status"}
"""The fields of an item with a result that are not the result."""
_LONGEST: Final = 64
"""The length of a tool's name that every API takes."""
_SEARCHES: Final = ("web_search", "web_search_preview")


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *said* is an untouched copy.

    Raises:
        FieldError: it is not a valid request.
    """
    wants = _wants(body)
    tools, hosted, namespaces = _tools(body)
    said_in = _Items(namespaces)
    turns = [*_instructions(body), *said_in.turns(body)]
    if not turns:
        if not (body.given.get("input") or any(body.look(name) for name in STATE["responses"])):
            body.refuse("must say something", "input")
        turns = [ChatMessage.user(())]  # what a server keeps
    wants = attrs.evolve(wants, namespaces=namespaces)
    body.object("stream_options")
    text, reasoning = body.object("text"), body.object("reasoning")
    if text is not None:
        take_neutral(text, "responses", {"verbosity": "medium"})
    read = incoming(
        WireForm.OPENAI_RESPONSES,
        body,
        said,
        wants,
        messages=turns,
        tools=tools,
        hosted_tools=hosted,
        tool_choice=_choice(body, [tool.name for tool in tools], namespaces),
        response_format=None if text is None else answer_format(text.object("format"), nested=None),
        reasoning_effort=None if reasoning is None else effort(reasoning, "effort"),
    )
    told = tuple(said_in.told)
    return attrs.evolve(read, request=attrs.evolve(read.request, told=told)) if told else read


def _wants(body: Fields) -> Wants:
    store, background = body.is_flag("store"), body.is_flag("background")
    previous, user = body.is_text("previous_response_id"), body.is_text("user")
    return Wants(
        include_usage=True,
        store=store,
        previous_response_id=previous,
        background=bool(background),
        user=user,
        defaults=take_neutral(body, "responses", {"store": True, "include": []}),
    )


def _instructions(body: Fields) -> Iterator[Turn]:
    if isinstance(body.look("instructions"), list):
        return  # items, of an answer that is continued
    with placed(body, "instructions"):
        if instructions := body.text("instructions"):
            yield ChatMessage.system(instructions)


# The conversation.


class _Items:
    """Items as turns.

    Args:
        namespaces: the namespace of each tool that has one, and its name there, by the tool's name.

    Attributes:
        told: the paths of the results that are told as text, because they name no call.
    """

    def __init__(self, namespaces: Mapping[str, tuple[str, str]]) -> None:
        self.told: list[str] = []
        self._namespaces = namespaces
        self._ids: dict[str, str] = {}  # the id of each call, by that of its item
        self._of_server: list[str] = []  # the ids of calls that the server itself runs

    def turns(self, body: Fields) -> Iterator[Turn]:
        """Return the turns of the conversation in *body*."""
        if isinstance(body.look("input"), str):
            with placed(body, "input"):
                yield ChatMessage.user(body.need("input", body.text("input")))
            return
        output: list[Fields] = []  # the items of an answer
        for item in body.objects("input"):
            if self._is_output(item):
                self._note(item)
                output.append(item)
                continue
            turn = self._turn(item)
            if turn is not None:
                if output:
                    yield _answer(output)
                output = []
                yield turn
        if output:
            yield _answer(output)

    def _note(self, item: Fields) -> None:
        """Give a tool the name that the server has for it, without a namespace. Note the ids of a call."""
        said = (item.look("namespace"), item.look("name"))
        name = next((name for name, inner in self._namespaces.items() if inner == said), None)
        if name is not None:
            item.take("namespace")
            item.give("name", name)
        id, call_id = item.look("id"), item.look("call_id")
        if isinstance(id, str) and isinstance(call_id, str):
            self._ids[id] = call_id
        environment = item.look("environment")
        if isinstance(environment, dict) and environment.get("type") == "container_reference":
            self._of_server += [call_id] if isinstance(call_id, str) else []

    def _is_output(self, item: Fields) -> bool:
        """Return whether *item* belongs to an answer."""
        kind = _kind(item)
        is_made = kind in _MADE or kind.endswith(("_call", "_list_tools", "_approval_request"))
        if kind.endswith(_OUTPUT):
            call_id = item.look("call_id")
            is_made = is_made or item.look("execution") == "server" or call_id in self._of_server
        return is_made or (kind == "message" and item.look("role") == "assistant")

    def _turn(self, item: Fields) -> Turn | None:
        """Return the content of *item*, or ``None`` if it has none here, such as a reference. Then it stays unread."""
        kind = _kind(item)
        if kind == "message":
            role = _ROLES.get(item.need("role", item.text("role")))
            if role is None:
                item.refuse(f"must be one of {', '.join(_ROLES)}", "role")
            item.take("type")
            with placed(item, "content"):
                return ChatMessage(role, item.need("content", _content(item, "content")))
        if kind.endswith(_OUTPUT) or kind in _CALL_IDS:
            return self._result(item, kind)
        item.leave()
        return None

    def _result(self, item: Fields, kind: str) -> ChatMessage:
        """Return the result of a call of any kind. If it names no call, it is told as the user's."""
        names = _CALL_IDS.get(kind, ("call_id",))
        ids = [id for name in names if (id := item.text(name)) is not None]
        item.take("type")
        is_plain = kind in ("function_call_output", "custom_tool_call_output")
        content = item.need("output", _content(item, "output")) if is_plain else _given(item, kind)
        with placed(item):
            if ids:
                is_error = item.look("status") == "failed" or None
                return ChatMessage.tool_result(self._ids.get(ids[0], ids[0]), content, is_error=is_error)
            self.told.append(path_of(item.place))
            name = ".".join(filter(None, (item.text("namespace"), item.text("name")))) or kind
            text = f"The output of {name}:"
            if isinstance(content, str):
                return ChatMessage.user(f"{text}\n{content}")
            return ChatMessage.user([TextPart(text), *content])


def _given(item: Fields, kind: str) -> str | list[ContentPart]:
    """Return the result in *item*, of a tool without a name: its picture, its text, or all its fields as JSON."""
    fields = {name: item.look(name) for name in item if name not in _OF_ITEMS}
    if kind == "apply_patch_call_output":
        fields["status"] = item.look("status")
    for name in fields:
        item.take(name)
    output = fields.get("output")
    picture: list[ContentPart] = []
    if isinstance(output, dict) and isinstance(output.get("image_url"), str):
        with placed(item, "output", "image_url"):
            picture = [ImagePart(**read_source(output["image_url"]))]
        del fields["output"]
    if fields.keys() == {"output"} and isinstance(output, str) and as_json_object(output) is None:
        return output
    text = dump_json(fields).decode()
    return [*([TextPart(text)] if fields else []), *picture] if picture else text


def _kind(item: Fields) -> str:
    kind = item.look("type")
    if kind is None and "role" in item:
        return "message"
    if kind is None and {*item} == {"id"}:
        return "item_reference"
    if not isinstance(kind, str):
        item.refuse("must be a string" if "type" in item else "is missing", "type")
    return kind


def _content(item: Fields, name: str) -> str | list[ContentPart] | None:
    if isinstance(item.look(name), str | None):
        return item.text(name)
    return [part for part in map(read_part, item.objects(name)) if part is not None]


def _answer(items: list[Fields]) -> Turn:
    """Return the answer of *items*: a message if they are a text and then calls, or else as its server sent it."""
    text: str | None = None
    calls: list[ToolCall] = []
    for item in items:
        kind, raw = _kind(item), set(item)
        content = item.look("content")
        if (
            kind == "message"
            and raw <= {"type", "role", "content"}
            and isinstance(content, str)
            and not (text or calls)
        ):
            text = content
        elif kind in _CALLS and raw == {"type", "call_id", "name", _CALLS[kind]}:
            with placed(item):
                requested, word = item.look(_CALLS[kind]), "custom" if kind == "custom_tool_call" else None
                calls.append(ToolCall(item.look("call_id"), item.look("name"), requested, word))
        else:
            return _whole(items)
    for item in items:
        item.rest()
    with placed(items[0], "content"):
        return ChatMessage.assistant(text, tool_calls=calls or None)


def _whole(items: list[Fields]) -> Turn:
    output = [_spelled_out(item) for item in items]
    return answer(
        items[0], {"object": "response", "status": "completed", "output": output}, "openai_responses"
    )


def _spelled_out(item: Fields) -> dict[str, Any]:
    """Return *item* as a server sends it: a message that is only a text becomes parts."""
    kind, raw = _kind(item), item.rest()
    if kind == "message" and isinstance(raw.get("content"), str):
        raw["content"] = [{"type": "output_text", "text": raw["content"], "annotations": []}]
    return {**raw, "type": kind}


# Options.


def _choice(
    body: Fields, tools: Collection[str], namespaces: Mapping[str, tuple[str, str]]
) -> str | NamedTool | None:
    """Return the choice among *tools*. Tools of *namespaces* that it names get the names that they have here."""

    def renamed(one: dict[str, Any]) -> dict[str, Any]:
        if isinstance(some := one.get("tools"), list):
            return {**one, "tools": [renamed(tool) if isinstance(tool, dict) else tool for tool in some]}
        space, inner = one.get("namespace"), one.get("name")
        for name, location in namespaces.items():
            if location == (space, inner):
                return {**{key: one[key] for key in one if key != "namespace"}, "name": name}
        if any(inner == other for _, other in namespaces.values()) and inner not in tools:
            body.refuse(f"{inner!r:.80} is a tool of several namespaces: add the `namespace`", "tool_choice")
        return one

    if isinstance(body.look("tool_choice"), dict):
        body.give("tool_choice", renamed(body.look("tool_choice")))
    return choice(body, is_nested=False)


def _tools(
    body: Fields,
) -> tuple[list[ToolDefinition], list[HostedTool], dict[str, tuple[str, str]]]:
    """Return the client's tools, the server's tools, and the namespaces by tool.

    The tools of a namespace are listed singly, because no other API has namespaces. If two tools have one name, those in a
    namespace get its name before theirs: ``sea__look``.
    """
    own: list[ToolDefinition] = []
    hosted: list[HostedTool] = []
    namespaces: dict[str, tuple[str, str]] = {}
    waiting: list[tuple[Fields, str | None]] = [(tool, None) for tool in body.objects("tools")]
    results: list[tuple[Fields, str | None]] = []
    while waiting:
        tool, namespace = waiting.pop(0)
        if tool.look("type") == "namespace" and isinstance(tool.look("tools"), list):
            tool.take("type")
            tool.take("description")
            name = tool.need("name", tool.text("name"))
            waiting[:0] = [(inner, name) for inner in tool.objects("tools")]
        else:
            results.append((tool, namespace))
    names = Counter(str(tool.look("name")) for tool, _ in results if "name" in tool)
    for tool, namespace in results:
        kind = tool.need("type", tool.text("type"))
        if kind in ("function", "custom"):
            inner = tool.need("name", tool.text("name"))
            tool.give("name", inner)
            if namespace is not None:
                name = f"{namespace}__{inner}" if names[inner] > 1 else inner
                if name != inner and (len(name) > _LONGEST or name in names or name in namespaces):
                    tool.refuse(f"is the name of two tools, and cannot be {name!r} instead", "name")
                tool.give("name", name)
                namespaces[name] = (namespace, inner)
            own.append(definition(tool) if kind == "function" else custom_definition(tool))
        elif kind in _SEARCHES and not any(one.kind is HostedToolKind.WEB_SEARCH for one in hosted):
            filters = tool.object("filters")
            allowed = () if filters is None else filters.texts("allowed_domains") or ()
            with placed(tool, "filters", "allowed_domains"):
                hosted.append(HostedTool(HostedToolKind.WEB_SEARCH, allowed_domains=allowed))
            if kind != _SEARCHES[0]:
                tool.give("type", kind)
        elif kind == "code_interpreter" and tool.look("container") == {"type": "auto"}:
            tool.take("container")
            hosted.append(HostedTool(HostedToolKind.CODE_EXECUTION))
        else:
            tool.leave()
    return own, hosted, namespaces
