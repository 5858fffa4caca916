"""Requests to ``POST /v1/responses``.

Facts: OpenAI's reference of "Create a model response", and the types of its SDK; provider document "OpenAI Responses".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crosswalk.plugins import (
    AudioPart,
    ChatMessage,
    ChatRequest,
    ChatResponse,
    ContentPart,
    Drops,
    HTTPRequest,
    ImagePart,
    Role,
    TextPart,
    ToolDefinition,
    Turn,
    UnsupportedRequestError,
    VideoPart,
    as_json_object,
    call_item,
    client_tool_item,
    content_parts,
    data_url,
    details_of,
    hosted_fields,
    input_part,
    is_of,
    lost_marks,
    mark_behind,
    message_of,
    openai_choice,
    openai_format,
    part_marks,
    put_options,
    response_items,
    responses as wire,
    text_of,
    unsupported_part,
    without_silence,
    written_mark,
)

_ENCRYPTED_CONTENT = "reasoning.encrypted_content"


def build_request(request: ChatRequest) -> HTTPRequest:
    """Build *request* for the Responses API.

    Some options have an effect here, also in ``provider_options``. With ``previous_response_id`` the turns up to that
    answer are left out, because the server has them. With ``store`` false reasoning goes back encrypted or not at all. A
    ``background`` response is streamed, so that its end is seen.

    Raises:
        UnsupportedRequestError: a message holds a sound, or a result does not fit its call's kind.
    """
    options = {**request.extra_options, **request.provider_options.get(request.provider or "", {})}
    drops = Drops(request)
    is_stored = options.get("store") is not False
    server_state = _kept_state(request, options)
    start = _start(request, {**server_state, **options})
    for number in range(start):
        drops.leave(number, "the server has it already")
    all_items = _items(request, request.messages[start:], drops, is_stored=is_stored)
    items = [*without_silence(all_items, lambda item: item is _EMPTY_MESSAGE)]
    if items and items[-1].get("role") == "assistant":
        drops.leave(len(request.messages) - 1, "the API does not continue an answer, it gives another one")
    body: dict[str, Any] = {"model": request.model, "input": items, **server_state}
    put_options(body, request, "responses", drops)
    tools = [_tool(tool) for tool in request.tools]
    for hosted_tool in request.hosted_tools:
        if hosted_tool.kind == "file_search" and not hosted_tool.file_store_ids:
            drops.add("hosted_tools", "a search in files needs file_store_ids")
        else:
            tools.append(hosted_fields(hosted_tool, "responses", drops))
    if tools:
        body["tools"] = tools
    choice = openai_choice(request)
    if choice is not None:
        named_tools = [
            tool for tool in request.tools if isinstance(choice, dict) and tool.name == choice["name"]
        ]
        body["tool_choice"] = next(
            (item for tool in named_tools if (item := client_tool_item(tool, "responses"))), choice
        )
    if request.response_format is not None:
        body["text"] = {"format": openai_format(request.response_format)}
    if request.reasoning_effort is not None:
        body["reasoning"] = {"effort": request.reasoning_effort.value}
        if not is_stored and _ENCRYPTED_CONTENT not in options.get("include", ()):
            body["include"] = [_ENCRYPTED_CONTENT]
    if request.stream or options.get("background") is True:
        body["stream"] = True
    return HTTPRequest("/v1/responses", body, adaptations=drops.found())


_STATE_OPTIONS = ("conversation", "previous_response_id")
"""The options that name the earlier turns that the server has."""


def _kept_state(request: ChatRequest, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option for the turns that the server has: a conversation, or the answer before the first one.

    It is read from the answers in the conversation.

    The caller's *options* take precedence.
    """
    if any(name in options for name in _STATE_OPTIONS):
        return {}
    answers = [turn for turn in request.messages if isinstance(turn, ChatResponse) and is_of(turn, request)]
    if answers and (conversation := _conversation_of(answers[-1])):
        return {"conversation": conversation}
    previous_id = answers[0].metadata.extensions.get("previous_response_id") if answers else None
    return {"previous_response_id": previous_id} if isinstance(previous_id, str) else {}


def _conversation_of(answer: ChatResponse) -> str | None:
    conversation = answer.metadata.extensions.get("conversation")
    id = conversation.get("id") if isinstance(conversation, Mapping) else conversation
    return id if isinstance(id, str) else None


def _start(request: ChatRequest, options: Mapping[str, Any]) -> int:
    """Return the number of the first turn that the server does not have. *options* names the record of the others."""
    previous_id, conversation = options.get("previous_response_id"), options.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    for number in reversed(range(len(request.messages))):
        turn = request.messages[number]
        if isinstance(turn, ChatResponse) and is_of(turn, request):
            is_there = turn.id == previous_id or (conversation and _conversation_of(turn) == conversation)
            if is_there and number + 1 < len(request.messages):
                return number + 1
    return 0


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    if (item := client_tool_item(tool, "responses")) is not None:
        return item
    if tool.is_custom:
        return {"type": "custom", **details_of(tool, "responses", "tools[][custom]", "tool")}
    # If left out, ``strict`` would be true here, which makes every argument a required one.
    return {"type": "function", "strict": False, **details_of(tool, "responses", "tools[][function]", "tool")}


# The conversation as items.


def _items(
    request: ChatRequest, turns: tuple[Turn, ...], drops: Drops, *, is_stored: bool
) -> Iterator[dict[str, Any]]:
    """Return the items of *turns*, the last ones of *request*."""
    items_by_turn = {
        id(turn): [*filter(_is_whole, response_items(turn))]  # an answer may be there twice
        for turn in request.messages
        if isinstance(turn, ChatResponse) and is_of(turn, request)
    }
    kinds = {_name(item): item["type"] for items in items_by_turn.values() for item in items}
    for turn in request.messages:
        calls = message_of(turn).tool_calls or ()
        kinds |= {call.id: "custom_tool_call" for call in calls if call.is_custom}
    marks = part_marks(request, "responses")
    for turn in turns:
        message, mark = message_of(turn), _mark_after(request, turn)
        if message.role is Role.TOOL:
            result = _result(message, kinds.get(message.tool_call_id or "", "function_call"), marks)
            if mark and result.get("output"):
                result["output"] = _marked(result["output"], mark)
            yield result
        elif message.role is not Role.ASSISTANT:
            content: Any = message.content
            if not isinstance(content, str):
                content = [_part(part, marks) for part in content_parts(message)]
            yield _message(message.role, _marked(content, mark) if mark and content else content)
        else:
            lost_marks(request, turn, drops)
            is_turn_stored = is_stored and id(turn) in items_by_turn and _is_stored(turn)
            items = (
                _own_items(items_by_turn[id(turn)], is_stored=is_turn_stored)
                if id(turn) in items_by_turn
                else _plain_items(turn)
            )
            turn_items = [*items]
            yield from turn_items or [_EMPTY_MESSAGE]


def _mark_after(request: ChatRequest, turn: Turn) -> dict[str, Any]:
    """Return the cache mark behind *turn*, under its key, or nothing."""
    mark = mark_behind(request, turn)
    return {} if mark is None else written_mark(mark, "responses")


def _marked(content: Any, mark: dict[str, Any]) -> list[dict[str, Any]]:
    """Return *content* as parts, the last of them with *mark*."""
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return [*parts[:-1], {**parts[-1], **mark}]


def _is_stored(turn: Turn) -> bool:
    return isinstance(turn, ChatResponse) and turn.metadata.extensions.get("store") is not False


def _plain_items(turn: Turn) -> Iterator[dict[str, Any]]:
    """Return the items of a message, or of another provider's answer."""
    if text := text_of(turn):
        yield _message(Role.ASSISTANT, text)
    for call in message_of(turn).tool_calls or ():
        yield call_item(call)


def _name(item: dict[str, Any]) -> str:
    """Return the id by which a result refers to *item*."""
    return str(item.get("call_id", item.get("id")))


def _is_whole(item: dict[str, Any]) -> bool:
    """Return whether *item* can go back. A call whose answer was cut may lack even its name."""
    needed_names = (
        ("type", "call_id", "name", "arguments") if item.get("type") == "function_call" else ("type",)
    )
    return all(type(item.get(name)) is str for name in needed_names)


def _message(role: Role, content: Any) -> dict[str, Any]:
    # OpenAI does not need the type, but llama.cpp does.
    return {"type": "message", "role": role.value, "content": content}


_EMPTY_MESSAGE = _message(Role.ASSISTANT, "")
"""An answer without items."""

_STREAM_FIELDS = frozenset(event.family for event in wire.EVENTS.values()) | {
    "added", "item_id", "output_index", "partial_image_b64", "partial_image_index", "sequence_number",
}  # fmt: skip
"""The additional fields that the events of a stream leave with an item."""


def _own_items(items: list[dict[str, Any]], *, is_stored: bool) -> Iterator[dict[str, Any]]:
    """Return the *items* of an answer as they go back.

    Reasoning goes with the item that follows it, and is refused alone. Reasoning that was not stored must be sent in full.
    """
    waiting_items: list[dict[str, Any]] = []
    for item in items:
        sent_item = {
            name: value for name, value in item.items() if value is not None and name not in _STREAM_FIELDS
        }
        if str(sent_item.get("encrypted_content")).startswith(wire.SIGNED):
            continue  # the reasoning of another API
        if sent_item["type"] == "reasoning":
            if is_stored or sent_item.get("encrypted_content") or sent_item.get("content"):
                waiting_items.append(sent_item)
            continue
        yield from waiting_items
        yield sent_item
        waiting_items.clear()


_RESULT_FORMS = {
    "mcp_approval_request": ("mcp_approval_response", "approval_request_id"),
    "tool_search_call": ("tool_search_output", "call_id"),
}
"""The item of a result and its field for the call's id, by the call's kind, for kinds that do not end in ``_output``."""
_NEEDED_FIELDS = {
    "mcp_approval_request": ("approve", bool, 'an approval is answered by {"approve": true} or false'),
    "tool_search_call": ("tools", list, 'a search for tools is answered by {"tools": [...]}'),
    "computer_call": ("output", dict, "a computer's call is answered by an image"),
}
"""The field that the result of a call of each kind needs, its type, and the words for that."""
_FAILED_RESULTS: Mapping[str, Any] = {
    "mcp_approval_request": {"approve": False},
    "tool_search_call": {"execution": "client", "status": "incomplete", "tools": []},
}
"""The result of a call that has failed, by its kind, if there is one."""


def _result(message: ChatMessage, kind: str, marks: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the item of a tool's result. For a tool without a name it has special fields, which a JSON object gives."""
    call_id, text, has_failed = message.tool_call_id, message.text, message.is_error is True
    parts = content_parts(message)
    type, key = _RESULT_FORMS.get(kind, (f"{kind}_output", "call_id"))
    fields: dict[str, Any] = {"output": text}
    if any(not isinstance(part, TextPart) or id(part) in marks for part in parts):
        fields["output"] = [_part(part, marks) for part in parts]
    if kind not in ("function_call", "custom_tool_call"):
        result_fields = as_json_object(text)
        if kind == "computer_call":
            image = next((part for part in parts if isinstance(part, ImagePart)), None)
            screenshot = (
                {} if image is None else {"type": "computer_screenshot", "image_url": data_url(image)}
            )
            result_fields = {**({"output": screenshot} if screenshot else {}), **(result_fields or {})}
        elif kind == "shell_call" and result_fields is None and isinstance(fields["output"], str):
            outcome = {"type": "exit", "exit_code": int(has_failed)}
            used_stream, other_stream = ("stderr", "stdout") if has_failed else ("stdout", "stderr")
            result_fields = {"output": [{used_stream: text, other_stream: "", "outcome": outcome}]}
        elif kind in _FAILED_RESULTS and result_fields is None and has_failed:
            result_fields = dict(_FAILED_RESULTS[kind])
            result_fields |= {"reason": text} if kind == "mcp_approval_request" else {}
        fields = fields if result_fields is None else result_fields
    name, wanted_type, reason = _NEEDED_FIELDS.get(kind, ("", object, ""))
    if name and not isinstance(fields.get(name), wanted_type):
        raise UnsupportedRequestError(reason, options=["messages"])
    status_field = {"status": "failed" if has_failed else "completed"} if kind == "apply_patch_call" else {}
    return {"type": type, key: call_id, **status_field, **fields}


def _part(part: ContentPart, marks: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    if isinstance(part, AudioPart | VideoPart):
        raise unsupported_part(part, "cannot be sent to this API")
    return {**input_part(part, data_url), **marks.get(id(part), {})}
