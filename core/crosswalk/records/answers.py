"""The bytes of an answer, from whatever a line of a log holds of it."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import orjson

from crosswalk.records.facts import RecordError
from crosswalk.records.layout import Layout
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json

__all__ = ["Answer", "answer_of", "plain_body"]


class Answer(NamedTuple):
    """An answer of a log.

    Attributes:
        body: its bytes.
        provider: the provider id whose form it was given here; ``None`` where it has its own.
        is_finish_unknown: whether the log does not keep why it ended.
    """

    body: bytes
    provider: str | None = None
    is_finish_unknown: bool = False


def answer_of(record: dict[str, Any], layout: Layout) -> Answer:
    """The answer in *record*, a line's object.

    Raises:
        RecordError: there is none.
    """
    encoded, field = layout.fields.get("response_base64"), layout.fields.get("response")
    if encoded is not None and (value := encoded.read(record)) is not None:
        return Answer(_decoded(value))
    value = None if field is None else field.read(record)
    if "message" in layout.answer and (made := _made(record, layout)) is not None:
        return made
    if value in (None, {}, "") and (error := _error(record, layout)) is not None:
        return Answer(dump_json({"type": "error", "error": error}), layout.dialect or "openai")
    where = field or layout.answer.get("message")
    place = ".".join(where.paths[0]) if where is not None else "response"
    if value is None:
        raise RecordError(f"{place}: no answer")
    return Answer(body_of(value, place))


def body_of(value: Any, place: str) -> bytes:
    """An answer's bytes: a text as it is, an object written anew, an array of objects as the stream of these events.

    Raises:
        RecordError: *value* is something else.
    """
    if type(value) is str:
        return value.encode(errors="surrogatepass")
    try:
        if type(value) is dict:
            return dump_json(value)
        if type(value) is list and value and all(type(event) is dict for event in value):
            return b"\n".join(map(dump_json, value)) + b"\n"
    except TypeError:
        raise RecordError(f"{place}: nested too deeply") from None
    raise RecordError(f"{place}: expected a string or an object, got {json_type_name(value)}")


def plain_body(record: dict[str, Any]) -> bytes:
    """The bytes of a line that is itself the answer.

    Raises:
        RecordError: it is nested too deeply.
    """
    return body_of(record, "body")


def _decoded(value: Any) -> bytes:
    if type(value) is not str:
        raise RecordError(f"body_base64: expected a string, got {json_type_name(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise RecordError("body_base64: not base64") from None


def _error(record: dict[str, Any], layout: Layout) -> Any:
    """The error that *record* has in place of an answer, as an object."""
    field = layout.fields.get("error")
    value = None if field is None else field.read(record)
    if type(value) is dict and value:
        return value
    parts = {name: at.read(record) for name, at in layout.error.items()}
    if value is not None:
        parts["message"] = value
    found = {
        name: part if type(part) is str else str(part)
        for name, part in parts.items()
        if part not in (None, "")
    }
    return found or None


def _made(record: dict[str, Any], layout: Layout) -> Answer | None:
    """An answer in OpenAI's form, of a log that keeps its parts; a provider's own body where the log has that instead.

    Returns:
        The answer; ``None`` where the line has neither a message nor counts.
    """
    parts = {name: field.read(record) for name, field in layout.answer.items()}
    output = _unpacked(parts["message"])
    if type(output) is dict and "role" not in output:
        return Answer(dump_json(output))
    messages = output if type(output) is list else [output]
    if output is not None and not all(type(one) in (str, dict) for one in messages):
        raise RecordError(f"the answer: expected a message, got {json_type_name(output)}")
    usage = {
        name: parts[name] for name in ("prompt_tokens", "completion_tokens") if parts.get(name) is not None
    }
    if output is None and not usage:
        return None
    finishes = [_finish(one, parts.get("finish_reason")) for one in messages]
    choices = [
        {"index": place, "message": _message(one), "finish_reason": finish or "stop"}
        for place, (one, finish) in enumerate(zip(messages, finishes, strict=True))
    ]
    body = {"id": parts.get("id"), "model": parts.get("model"), "choices": choices, "usage": usage}
    data = dump_json({"object": "chat.completion", **{key: item for key, item in body.items() if item}})
    return Answer(data, "openai", None in finishes)


def _unpacked(value: Any) -> Any:
    """*value*, read where it is the text of a JSON object or array, as telemetry keeps messages."""
    if type(value) is str and value.lstrip()[:1] in ("{", "["):
        try:
            return load_json(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _message(value: Any) -> dict[str, Any]:
    """A message in OpenAI's form, of a text, of one of OpenAI's, or of one of OpenTelemetry's GenAI conventions."""
    if type(value) is not dict:
        return {"role": "assistant", "content": value}
    if type(value.get("parts")) is not list:
        return {**value, "role": "assistant"}
    texts: dict[str, list[str]] = {"text": [], "reasoning": []}
    calls = []
    for part in value["parts"]:
        kind = part.get("type") if type(part) is dict else None
        if kind in texts:
            texts[kind].append(str(part.get("content", "")))
        elif kind == "tool_call":
            arguments = part.get("arguments")
            text = (
                arguments
                if type(arguments) is str
                else dump_json({} if arguments is None else arguments).decode()
            )
            calls.append(
                {
                    "id": part.get("id"),
                    "type": "function",
                    "function": {"name": part.get("name"), "arguments": text},
                }
            )
        else:
            raise RecordError("the answer: a message part that is not text, reasoning or tool_call")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts["text"])}
    if texts["reasoning"]:
        message["reasoning_content"] = "".join(texts["reasoning"])
    return message | ({"tool_calls": calls} if calls else {})


def _finish(message: Any, reason: Any) -> Any:
    """OpenAI's word for why *message* ended; ``None`` where the log has none. OpenTelemetry says ``tool_call``."""
    own = message.get("finish_reason") if type(message) is dict else None
    word = own or reason or None
    return "tool_calls" if word == "tool_call" else word
