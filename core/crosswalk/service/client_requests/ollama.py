"""Requests in the forms of Ollama's ``/api/chat`` and ``/api/generate``. Facts: provider document "Ollama"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from crosswalk.convert.form import WireForm
from crosswalk.request import ReasoningEffort, ResponseFormat, ToolDefinition, Turn
from crosswalk.service.client_requests.chat import definition
from crosswalk.service.client_requests.incoming import Incoming, Wants
from crosswalk.service.client_requests.reading import (
    answer,
    incoming,
    options,
    read_words,
    take_neutral,
    word,
)
from crosswalk.types.json import dump_json
from crosswalk.types.message import ChatMessage, ContentPart, ImagePart, Role, TextPart, ToolCall
from crosswalk.wire.fields import Fields, placed

_AT_LEAST_1: Final = ("top_k", "num_predict")
"""Options whose numbers below 1 have another meaning: no limit, as much as fits."""
_DEFAULTS: Final[dict[str, Any]] = {
    "raw": False,
    "suffix": "",
    "template": "",
    "context": [],
    "format": "",
    "images": [],
    "system": "",
}
_NOTHING: Final = ChatMessage.user("")
_ROLES: Final = {role.value: role for role in Role}


def read_chat(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse *body*, a request to ``/api/chat``. *said* is the same, unchanged.

    Raises:
        FieldError: it is none.
    """
    turns = _Conversation()
    for message in body.objects("messages"):
        turns.add(message)
    if turns.turns:
        return _incoming(WireForm.OLLAMA, body, said, turns.turns)
    return _incoming(WireForm.OLLAMA, body, said, [_NOTHING], load=_loading(body))


def read_generate(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse *body*, a request to ``/api/generate``. *said* is the same, unchanged.

    Raises:
        FieldError: it is none.
    """
    turns: list[Turn] = []
    with placed(body, "system"):
        if system := body.text("system"):
            turns.append(ChatMessage.system(system))
    with placed(body, "prompt"):
        prompt = body.text("prompt") or ""
        turns.append(ChatMessage.user(_content(prompt, body)))
    return _incoming(WireForm.OLLAMA_GENERATE, body, said, turns, load=None if prompt else _loading(body))


def _loading(body: Fields) -> str:
    """Return the wish of a request without a prompt: to load the model, or to unload it if it is to be kept for no time."""
    stored = body.look("keep_alive")
    if isinstance(stored, str):  # as Go writes durations: 0, 0s, 0m0.0s
        is_zero = "0" in stored and not any(digit in stored for digit in "123456789")
    else:
        is_zero = type(stored) in (int, float) and 0 <= stored < 1
    return "unload" if is_zero else "load"


def _incoming(
    form: WireForm, body: Fields, said: dict[str, Any], turns: list[Turn], load: str | None = None
) -> Incoming:
    logprobs = bool(body.is_flag("logprobs"))
    wanted = take_neutral(body, "ollama", _DEFAULTS)
    stream = body.flag("stream")
    return incoming(
        form,
        body,
        said,
        Wants(include_usage=True, logprobs=logprobs, load=load, defaults=wanted),
        messages=turns,
        **_options(body),
        tools=[*_tools(body)],
        response_format=_format(body),
        reasoning_effort=_effort(body),
        stream=stream is not False,  # it streams unless it is told not to
    )


def _options(body: Fields) -> dict[str, Any]:
    raw = body.object("options")
    if raw is None:
        return {}
    stored = {name: raw.is_whole(name) for name in _AT_LEAST_1}
    for name, value in stored.items():
        if value is not None and value < 1:
            raw.take(name)
    result = options(raw, "ollama", "options.")
    for name, value in stored.items():
        if value is not None and value < 1:
            raw.give(name, value)
    return result


# The conversation.


class _Conversation:
    """Convert messages to turns. Calls and results need no ids in this API, so some are made up.

    Attributes:
        turns: the turns.
    """

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._open: list[ToolCall] = []  # calls that have no result yet

    def add(self, message: Fields) -> None:
        """Add *message* as a turn."""
        role = _ROLES.get(message.need("role", message.text("role")))
        if role is None:
            message.refuse(f"must be one of {', '.join(_ROLES)}", "role")
        text = message.text("content") or ""
        if role is Role.ASSISTANT:
            self.turns.append(self._answer(message, text))
        elif role is Role.TOOL:
            self.turns.append(self._result(message, text))
        else:
            with placed(message, "content"):
                self.turns.append(ChatMessage(role, _content(text, message)))

    def _answer(self, message: Fields, text: str) -> Turn:
        thinking = message.text("thinking")
        calls: list[ToolCall] = []
        raw: list[dict[str, Any]] = []
        for call in message.objects("tool_calls"):
            if call.look("type") == "function":
                call.take("type")
            function = call.need("function", call.object("function"))
            function.whole("index")
            name = function.need("name", function.text("name"))
            arguments = function.plain("arguments") or {}
            id = call.text("id") or f"call_{len(self.turns)}_{len(calls)}"
            with placed(call):
                calls.append(ToolCall(id, name, dump_json(arguments).decode()))
            raw.append({"id": id, "function": {"index": len(raw), "name": name, "arguments": arguments}})
        self._open = calls
        if not thinking:
            with placed(message, "content"):
                return ChatMessage(Role.ASSISTANT, _content(text, message), tool_calls=calls or None)
        whole: dict[str, Any] = {"role": "assistant", "content": text, "thinking": thinking}
        if raw:
            whole["tool_calls"] = raw
        line = {"model": "-", "message": whole, "done": True, "done_reason": "stop"}
        return answer(message, line, WireForm.OLLAMA.provider)

    def _result(self, message: Fields, text: str) -> Turn:
        id, name = message.text("tool_call_id"), message.text("tool_name")
        call = next(
            (call for call in self._open if id == call.id or (not id and name in (None, call.name))), None
        )
        if call is None and not id:
            message.refuse("is the result of no call before it")
        if call is not None:
            self._open.remove(call)
            name = None if name == call.name else name  # the call says it
        with placed(message):
            return ChatMessage.tool_result(
                id or call.id if call else str(id), _content(text, message), name=name
            )


def _content(text: str, fields: Fields) -> str | list[ContentPart]:
    """Return *text*, with the images of *fields* if there are any."""
    images: list[ContentPart] = []
    for number, image in enumerate(fields.texts("images") or ()):
        with placed(fields, "images", number):
            images.append(ImagePart(data=image))
    return [TextPart(text), *images] if images else text


# Options.


def _tools(body: Fields) -> Iterator[ToolDefinition]:
    for tool in body.objects("tools"):
        if tool.look("type") == "function":
            tool.take("type")
        yield definition(tool.need("function", tool.object("function")))


def _format(body: Fields) -> ResponseFormat | None:
    wanted = body.look("format")
    if isinstance(wanted, dict):
        with placed(body, "format"):
            return ResponseFormat(body.plain("format"))
    return word(body, "format", {"json": ResponseFormat()})


def _effort(body: Fields) -> str | None:
    """Return how much to think. A plain true counts as medium, and the field stays unread."""
    think = body.look("think")
    if think is False:
        body.take("think")
        return ReasoningEffort.NONE
    return (
        ReasoningEffort.MEDIUM
        if think is True
        else word(body, "think", read_words("reasoning_effort", "ollama"))
    )
