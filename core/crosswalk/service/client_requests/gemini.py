"""Requests in the form of Gemini's ``generateContent``. Facts: provider document "Google Gemini".

The API takes each field by its JSON name and by its proto name: ``systemInstruction`` and ``system_instruction``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from crosswalk.convert.form import WireForm
from crosswalk.request import (
    HostedTool,
    HostedToolKind,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    Turn,
)
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
from crosswalk.types.message import AudioPart, ChatMessage, ContentPart, FilePart, ImagePart, TextPart
from crosswalk.wire.fields import Fields, placed
from crosswalk.wire.gemini import HOSTED_TOOLS, proto_name
from crosswalk.wire.options import options_read

_CONFIG: Final = "generationConfig."
_DEFAULTS: Final = {
    path.removeprefix(_CONFIG): option.neutral
    for path, option in options_read("gemini").items()
    if path.startswith(_CONFIG) and option.neutral is not None
} | {"stopSequences": [], "responseModalities": ["TEXT"]}
_MODES: Final = read_words("tool_choice", "gemini")
_LEVELS: Final = read_words("reasoning_effort", "gemini")
_TYPES: Final = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_MEDIA: Final[dict[str, type[ImagePart | AudioPart]]] = {"image": ImagePart, "audio": AudioPart}


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *said* is an untouched copy. Model and stream are in *body*, too, although they come from
    the path.

    Raises:
        FieldError: it is not a valid request.
    """
    config = _object(body, "generationConfig") or Fields({})
    defaults = take_neutral(config, "", _DEFAULTS)
    count, logprobs = config.is_whole("candidateCount"), config.is_flag("responseLogprobs")
    tools, hosted = _tools(body)
    return incoming(
        WireForm.GEMINI,
        body,
        said,
        Wants(
            include_usage=True, n=1 if count is None else count, logprobs=bool(logprobs), defaults=defaults
        ),
        messages=[*_system(body), *_Conversation(body).turns],
        **options(config, "gemini", _CONFIG),
        tools=tools,
        hosted_tools=hosted,
        tool_choice=_choice(body),
        response_format=_format(config),
        reasoning_effort=_effort(config),
    )


def _name(fields: Fields, name: str) -> str:
    """Return the spelling of the field *name* in *fields*."""
    proto = proto_name(name)
    return proto if proto in fields and name not in fields else name


def _object(fields: Fields, name: str) -> Fields | None:
    return fields.object(_name(fields, name))


def _objects(fields: Fields, name: str) -> Iterator[Fields]:
    return fields.objects(_name(fields, name))


def _text(fields: Fields, name: str) -> str | None:
    return fields.text(_name(fields, name))


# The conversation.


def _system(body: Fields) -> Iterator[ChatMessage]:
    content = _object(body, "systemInstruction")
    if content is None:
        return
    content.take("role")  # it has no meaning here
    for part in content.objects("parts"):
        with placed(part, "text"):
            yield ChatMessage.system(part.need("text", part.text("text")))


class _Conversation:
    """Contents as turns. Calls and results need no ids here, so some have to be made up.

    Attributes:
        turns: the turns.
    """

    def __init__(self, body: Fields) -> None:
        self.turns: list[Turn] = []
        self._open: list[tuple[str, str]] = []  # id and name of each call that has no result yet
        given = body.look("contents")
        contents = (
            body.objects("contents") if isinstance(given, list) else filter(None, [body.object("contents")])
        )
        for content in contents:
            role = content.text("role")
            if role == "model":
                self._answer(content)
            elif role in (None, "user", "function"):
                self._user(content)
            else:
                content.refuse("must be one of user, model", "role")
        if not self.turns:
            body.refuse("must have at least one content", "contents")

    def _user(self, content: Fields) -> None:
        parts: list[ContentPart] = []
        count = len(self.turns)
        for part in content.objects("parts"):
            given = _object(part, "functionResponse")
            if given is not None:
                self._say(content, parts)
                parts = []
                self.turns.append(self._result(given))
            elif (read := _part(part)) is not None:
                parts.append(read)
        self._say(content, parts)
        if len(self.turns) == count and content.given.get("parts"):
            self.turns.append(ChatMessage.user(()))  # none of its parts is read

    def _say(self, content: Fields, parts: list[ContentPart]) -> None:
        if parts:
            is_text = len(parts) == 1 and isinstance(parts[0], TextPart)
            with placed(content, "parts"):
                self.turns.append(
                    ChatMessage.user(parts[0].text if is_text and isinstance(parts[0], TextPart) else parts)
                )

    def _result(self, given: Fields) -> ChatMessage:
        name, id = given.need("name", given.text("name")), given.text("id")
        call = next((call for call in self._open if id == call[0] or (not id and name == call[1])), None)
        if call is None:
            given.refuse("is the result of no call before it")
        self._open.remove(call)
        response = given.plain("response") or {}
        text, is_error = _given(response)
        media = [part for part in map(_part, given.objects("parts")) if part is not None]
        with placed(given):
            content: Any = [TextPart(text), *media] if media else text
            return ChatMessage.tool_result(call[0], content, is_error=is_error or None)

    def _answer(self, content: Fields) -> None:
        """Return the answer as its server sent it, each call with an id."""
        parts = content.items("parts") or []
        self._open = []
        raw: list[Any] = []
        for number, part in enumerate(parts):
            call = part.get("functionCall", part.get("function_call")) if isinstance(part, dict) else None
            if isinstance(call, dict):
                id = call.get("id") or f"call_{len(self.turns)}_{number}"
                self._open.append((id, str(call.get("name"))))
                remainder = {
                    key: value for key, value in part.items() if key not in ("functionCall", "function_call")
                }
                part = {**remainder, "functionCall": {**call, "id": id}}
            raw.append(part)
        if not raw:
            content.refuse("must have at least one part", "parts")
        candidate = {"content": {"role": "model", "parts": raw}, "finishReason": "STOP", "index": 0}
        self.turns.append(answer(content, {"candidates": [candidate]}, WireForm.GEMINI.provider))


def _given(response: dict[str, Any]) -> tuple[str, bool]:
    """Return the result of a tool, as text, and whether it is an error."""
    if len(response) == 1:
        (key, value) = next(iter(response.items()))
        if key in ("result", "output", "error") and isinstance(value, str):
            return value, key == "error"
    return dump_json(response).decode(), False


def _part(part: Fields) -> ContentPart | None:
    """Return *part* as a part of a message, or ``None`` if there is no such part. Then it stays unread."""
    if isinstance(part.look("text"), str):
        with placed(part, "text"):
            return TextPart(part.need("text", part.text("text")))
    for name, field, ours in (("inlineData", "data", "data"), ("fileData", "fileUri", "url")):
        media = _object(part, name)
        if media is not None:
            where = {ours: media.need(field, _text(media, field)), "media_type": _text(media, "mimeType")}
            title = _text(media, "displayName")
            kind = _MEDIA.get((where["media_type"] or "").partition("/")[0])
            with placed(media):
                return FilePart(**where, name=title) if kind is None else kind(**where)
    part.leave()
    return None


# Options.


def _tools(body: Fields) -> tuple[list[ToolDefinition], list[HostedTool]]:
    """Return the client's tools, and the server's own."""
    own: list[ToolDefinition] = []
    hosted: list[HostedTool] = []
    for tool in body.objects("tools"):
        own += map(_definition, _objects(tool, "functionDeclarations"))
        for kind, name in HOSTED_TOOLS.items():
            if tool.look(_name(tool, name)) == {}:
                tool.take(_name(tool, name))
                hosted.append(HostedTool(HostedToolKind(kind)))
    return own, hosted


def _definition(tool: Fields) -> ToolDefinition:
    name, about = tool.need("name", tool.text("name")), tool.text("description")
    schema = tool.plain(_name(tool, "parametersJsonSchema"))
    if schema is None:
        schema = _json_schema(tool.plain("parameters") or {"type": "object", "properties": {}})
    with placed(tool):
        return ToolDefinition(name, about, schema)


def _json_schema(schema: Any) -> Any:
    """Return Google's *schema* as JSON Schema: types in lower case, ``nullable`` as one more type."""
    if isinstance(schema, list):
        return [_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    read: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            read[key] = {name: _json_schema(inner) for name, inner in value.items()}
        elif key in ("items", "anyOf"):
            read[key] = _json_schema(value)
        elif key == "type" and value in _TYPES:
            read[key] = value.lower()
        else:
            read[key] = value
    if read.pop("nullable", False) is True and isinstance(read.get("type"), str):
        read["type"] = [read["type"], "null"]
    return read


def _choice(body: Fields) -> str | NamedTool | None:
    config = _object(body, "toolConfig")
    calling = None if config is None else _object(config, "functionCallingConfig")
    if calling is None:
        return None
    names = calling.look(_name(calling, "allowedFunctionNames"))
    if calling.look("mode") == "ANY" and isinstance(names, list) and len(names) == 1:
        calling.take("mode")
        calling.take(_name(calling, "allowedFunctionNames"))
        with placed(calling, "allowedFunctionNames"):
            return NamedTool(names[0])
    if isinstance(names, list):
        calling.leave()
        return None
    return word(calling, "mode", _MODES)


def _format(config: Fields) -> ResponseFormat | None:
    if config.look(_name(config, "responseMimeType")) == "text/plain":
        config.take(_name(config, "responseMimeType"))
    if config.look(_name(config, "responseMimeType")) != "application/json":
        return None
    config.take(_name(config, "responseMimeType"))
    schema = config.plain(_name(config, "responseJsonSchema"))
    if schema is None:
        given = config.plain(_name(config, "responseSchema"))
        schema = None if given is None else _json_schema(given)
    with placed(config, "responseSchema"):
        return ResponseFormat() if schema is None else ResponseFormat(schema)


def _effort(config: Fields) -> str | None:
    """Return the reasoning effort: the word for it, or none for a budget of zero. Any other budget stays unread."""
    thinking = _object(config, "thinkingConfig")
    if thinking is None:
        return None
    if thinking.look("includeThoughts") is True:
        thinking.take("includeThoughts")  # visible thoughts of a server are always passed on
    if thinking.look("thinkingBudget") == 0:
        thinking.take("thinkingBudget")
        return ReasoningEffort.NONE
    return word(thinking, "thinkingLevel", _LEVELS)
