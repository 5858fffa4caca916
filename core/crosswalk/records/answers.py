"""The bytes of an answer, from any form in which a log stores it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from crosswalk.records.facts import RecordError
from crosswalk.records.layout import Layout, layouts, verdict_of
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json


class LoggedAnswer(NamedTuple):
    """An answer in a log.

    Attributes:
        body: its bytes, or ``b""`` if the line only states facts about it.
        provider: the provider id of the form that it was converted to here, or ``None`` if it is unchanged.
        is_finish_unknown: whether the log does not store the finish reason.
        embedded: the object, if it is no message but embeddings.
    """

    body: bytes
    provider: str | None = None
    is_finish_unknown: bool = False
    embedded: dict[str, Any] | None = None


_EMPTY_VALUES: Final[tuple[Any, ...]] = (None, "", "{}", "[]", "null", {}, [])
"""The values of an answer that is not stored."""
_FIRST_ERROR_STATUS: Final = 400


def answer_of(record: dict[str, Any], layout: Layout, facts: Mapping[str, Any]) -> LoggedAnswer:
    """Return the answer in *record*, the object of a line.

    Args:
        record: the object.
        layout: its layout.
        facts: the facts that the line states, as :func:`crosswalk.records.facts.read_facts` returns them.

    Raises:
        RecordError: the record has no answer, and states nothing that counts without one.
    """
    base64_field, field = layout.fields.get("response_base64"), layout.fields.get("response")
    if base64_field is not None and (value := base64_field.read(record)) is not None:
        return LoggedAnswer(_decoded_base64(value, "body_base64"))
    value = None if field is None else field.read(record)
    encoding = layout.fields.get("response_encoding")
    if encoding is not None and encoding.read(record) == "base64":
        return LoggedAnswer(
            _decoded_base64(value, ".".join(field.paths[0]) if field is not None else "response")
        )
    is_absent, has_failed = bool(verdict_of(layout.no_answer, record)), verdict_of(layout.failed, record)
    message = layout.answer.get("message")
    if (embedded := _embedded(value if message is None else message.read(record))) is not None:
        return LoggedAnswer(b"", embedded=embedded)
    # A message beside a stated failure is the beginning of one, or the failure in words.
    if message is not None and not is_absent and not has_failed:
        try:
            answer = _from_parts(record, layout)
        except RecordError:  # a message of a form of its own; its counts are known all the same
            if "tokens" not in facts:
                raise
            answer = None
        if answer is not None:
            return answer
    if is_absent or value in _EMPTY_VALUES:
        error = None if has_failed is False else _error_object(record, layout)
        status = facts.get("status")
        if error is None and (
            has_failed or (layout.states and status is not None and status >= _FIRST_ERROR_STATUS)
        ):
            error = {"message": "the log states a failure without a cause"}
        if error is not None:
            return LoggedAnswer(dump_json({"type": "error", "error": error}), layout.dialect or "openai")
        is_known = has_failed is False or status is not None or "cost" in facts or facts.get("tokens")
        if layout.states and is_known:
            return LoggedAnswer(b"")
    if type(value) is dict and value.keys() == {"type", "message"}:  # the inner error alone
        value = {"type": "error", "error": value}
    answer_field = field or layout.answer.get("message")
    path = ".".join(answer_field.paths[0]) if answer_field is not None else "response"
    if value is None or (layout.states and (is_absent or value in _EMPTY_VALUES)):
        raise RecordError(f"{path}: no answer")
    return LoggedAnswer(body_of(value, path))


def _embedded(value: Any) -> dict[str, Any] | None:
    """Return the object that *value* is, or is the text of, if it has the form of embeddings."""
    if type(value) is str and '"embedding' in value:
        value = _decoded_json(value)
    return value if type(value) is dict and layouts()["embeddings"].fits(value) else None


def body_of(value: Any, path: str) -> bytes:
    """Return the bytes of an answer: a string unchanged, an object as JSON, an array of objects as a stream of events.

    Args:
        value: the stored answer.
        path: its path in the record, for errors.

    Raises:
        RecordError: *value* is something else, or nested too deeply.
    """
    if type(value) is str:
        return value.encode(errors="surrogatepass")
    try:
        if type(value) is dict:
            is_dumped = type(value.get("candidates")) is list and "usage_metadata" in value
            return dump_json(_as_sent(value) if is_dumped else value)
        if type(value) is list and value and all(type(event) is dict for event in value):
            return b"\n".join(map(dump_json, value)) + b"\n"
    except TypeError:
        raise RecordError(f"{path}: nested too deeply") from None
    raise RecordError(f"{path}: expected a string or an object, got {json_type_name(value)}")


_SNAKE_CASE_LETTER: Final = re.compile("_([a-z])")
_CALLER_KEYS: Final = ("args", "response")


def _as_sent(value: Any) -> Any:
    """Return *value*, a part of a dumped object of Google's SDK, with the names of the API and without the added nulls."""
    if type(value) is list:
        return [_as_sent(item) for item in value]
    if type(value) is not dict:
        return value
    return {
        _SNAKE_CASE_LETTER.sub(lambda match: match[1].upper(), name): item
        if name in _CALLER_KEYS
        else _as_sent(item)
        for name, item in value.items()
        if item is not None
    }


def plain_body(record: dict[str, Any]) -> bytes:
    """Return the bytes of a line that is itself the answer.

    Raises:
        RecordError: it is nested too deeply.
    """
    return body_of(record, "body")


def _decoded_base64(value: Any, path: str) -> bytes:
    if type(value) is not str:
        raise RecordError(f"{path}: expected a string, got {json_type_name(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise RecordError(f"{path}: not base64") from None


def _error_object(record: dict[str, Any], layout: Layout) -> Any:
    """Return the error of *record* as an object, or ``None``."""
    field = layout.fields.get("error")
    value = None if field is None else field.read(record)
    if type(value) is dict and value:
        return value
    parts = {name: error_field.read(record) for name, error_field in layout.error.items()}
    if value is not None:
        parts["message"] = value
    error_object = {
        name: part if type(part) is str else str(part)
        for name, part in parts.items()
        if part not in (None, "")
    }
    return error_object or None


def _from_parts(record: dict[str, Any], layout: Layout) -> LoggedAnswer | None:
    """Return an answer in OpenAI's form from a log that stores its parts, or the provider's own body if the log has that.

    Returns ``None`` if the line has no message.
    """
    parts = {name: field.read(record) for name, field in layout.answer.items()}
    output = _decoded_json(parts["message"])
    if type(output) is dict and ("role" not in output or "usage" in output) and has_content(output):
        if _is_whole(output):
            return LoggedAnswer(body_of(output, "the answer"))
        output = output if type(output.get("message")) is dict else _said(output)
    if output in _EMPTY_VALUES:
        return None
    messages = output if type(output) is list else [output]
    if not all(type(one) in (str, dict) for one in messages):
        raise RecordError(f"the answer: expected a message, got {json_type_name(output)}")
    finish_reasons = [_finish(one, parts.get("finish_reason")) for one in messages]
    choices = [
        {"index": index, "message": _message(one), "finish_reason": finish_reason or "stop"}
        for index, (one, finish_reason) in enumerate(zip(messages, finish_reasons, strict=True))
    ]
    body = {"id": parts.get("id"), "model": parts.get("model"), "choices": choices}
    body_json = dump_json({"object": "chat.completion", **{key: item for key, item in body.items() if item}})
    return LoggedAnswer(body_json, "openai", None in finish_reasons)


def has_content(value: dict[str, Any]) -> bool:
    """Whether *value* has the content of an answer where providers put it. Other objects are an application's."""
    return any(type(value.get(key)) in kinds for key, kinds in _CONTENT_TYPES.items())


_BODY_MARKS: Final = {
    "content": ("type", "model", "stop_reason"),
    "message": ("model", "done", "finish_reason"),
    "output": ("object", "model", "stopReason", "request_id"),
}
"""What a body has beside its content. Some recorders cut out the content alone."""


def _is_whole(output: dict[str, Any]) -> bool:
    """Whether *output* is a provider's body, and not only its ``content`` or ``output``."""
    return all(
        name not in output or not output.keys().isdisjoint(marks) for name, marks in _BODY_MARKS.items()
    )


def _said(output: dict[str, Any]) -> str | None:
    """Return the text of an answer of which only the content is stored, or ``None`` if it is more than text."""
    items = output.get("output", output.get("content"))
    if type(items) is not list or not all(type(item) is dict for item in items):
        return None
    block_lists = [item.get("content") if item.get("type") == "message" else [item] for item in items]
    blocks = [block for part in block_lists if type(part) is list for block in part if type(block) is dict]
    texts = [block.get("text") for block in blocks if block.get("type") in ("text", "output_text")]
    is_all_text = len(texts) == len(blocks) and all(type(text) is str for text in texts)
    return "".join(map(str, texts)) if is_all_text else None


_CONTENT_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "candidates": (list,),
    "choices": (list,),
    "content": (list,),
    "error": (dict,),
    "message": (dict,),
    "output": (list, dict),
}


def _decoded_json(value: Any) -> Any:
    """Parse *value* if it is the text of a JSON object or array, which is how telemetry stores messages."""
    if type(value) is str and value.lstrip()[:1] in ("{", "["):
        try:
            return load_json(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _message(value: Any) -> dict[str, Any]:
    """Return a message in OpenAI's form, from a text, an OpenAI message, or a message of OpenTelemetry."""
    if type(value) is not dict:
        return {"role": "assistant", "content": value}
    if type(value.get("message")) is dict:  # a choice, with the message in it
        return _message(value["message"])
    if value.keys().isdisjoint({"role", "content", "parts", "tool_calls"}):
        return {"role": "assistant", "content": dump_json(value).decode()}
    if type(value.get("parts")) is not list:
        return {**value, "role": "assistant", **_tool_calls(value)}
    texts: dict[str, list[str]] = {"text": [], "reasoning": []}
    calls = []
    for part in value["parts"]:
        kind = part.get("type") if type(part) is dict else None
        if kind in texts:
            texts[kind].append(str(part.get("content", "")))
        elif kind == "tool_call":
            calls.append(_tool_call(part))
        else:
            raise RecordError("the answer: a message part that is not text, reasoning or tool_call")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts["text"])}
    if texts["reasoning"]:
        message["reasoning_content"] = "".join(texts["reasoning"])
    return message | ({"tool_calls": calls} if calls else {})


def _tool_calls(message: dict[str, Any]) -> dict[str, Any]:
    """Return the tool calls of *message* in OpenAI's form, if their names are beside the arguments, as in Datadog's."""
    calls = message.get("tool_calls")
    if type(calls) is not list or not all(
        type(call) is dict and not call.keys().isdisjoint(_ARGUMENT_KEYS) for call in calls
    ):
        return {}
    return {"tool_calls": [_tool_call(call) for call in calls]}


_ARGUMENT_KEYS: Final = ("arguments", "args")


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = next((call[name] for name in _ARGUMENT_KEYS if name in call), None)
    text = arguments if type(arguments) is str else dump_json({} if arguments is None else arguments).decode()
    id = call.get("id") or call.get("tool_id")
    return {"id": id, "type": "function", "function": {"name": call.get("name"), "arguments": text}}


def _finish(message: Any, reason: Any) -> Any:
    """Return OpenAI's finish reason of *message*, or ``None`` if the log has none."""
    own_reason = message.get("finish_reason") if type(message) is dict else None
    finish_word = own_reason or reason or None
    return _FINISH_REASONS.get(finish_word.lower(), finish_word) if type(finish_word) is str else finish_word


_FINISH_REASONS: Final = {
    "complete": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
    "safety": "content_filter",
    "stop_sequence": "stop",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
}
"""OpenAI's finish reasons by the words of OpenTelemetry, Anthropic, Cohere and Google."""
