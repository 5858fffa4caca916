"""Restores the stored fields of an answer's original form at their positions.

``metadata.extensions`` have the structure of the payload. In a list of objects, each gives its position as ``index``
if its position in the list is a different one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswalk.convert.form import WireForm
from crosswalk.types.response import ChatResponse
from crosswalk.wire import chat as chat_wire, gemini as gemini_wire, responses as responses_wire


def form_of_body(body: Any) -> WireForm | None:
    """Return the form of a whole *body* by the guarantees of its API, or ``None`` if it matches no form."""
    if not isinstance(body, dict):
        return None
    if body.get("object") == "response":
        return WireForm.OPENAI_RESPONSES
    if body.get("type") == "message" and isinstance(body.get("content"), list):
        return WireForm.ANTHROPIC
    if type(body.get("done")) is bool:
        if isinstance(body.get("message"), dict):
            return WireForm.OLLAMA
        return WireForm.OLLAMA_GENERATE if isinstance(body.get("response"), str) else None
    if isinstance(body.get("candidates"), list) or isinstance(body.get("promptFeedback"), dict):
        return WireForm.GEMINI
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return None
    if body.get("object") == chat_wire.TEXT and isinstance(first.get("text"), str):
        return WireForm.OPENAI_COMPLETIONS
    return WireForm.OPENAI_CHAT if isinstance(first.get("message"), dict) else None


def source_form(response: ChatResponse) -> WireForm | None:
    """Return the form that *response*, complete or partial, was read from, or ``None`` if it is unclear."""
    remaining = response.metadata.extensions
    object = remaining.get("object")
    if isinstance(object, str) and object.startswith("chat.completion"):
        return WireForm.OPENAI_CHAT
    if object == chat_wire.TEXT:
        return WireForm.OPENAI_COMPLETIONS
    if "stop_sequence" in remaining:  # a message always has it
        return WireForm.ANTHROPIC
    if response.metadata.provider_id == WireForm.ANTHROPIC.provider and "log_id" not in remaining:
        return WireForm.ANTHROPIC  # of all but the legacy completions of Anthropic, which have it
    if response.metadata.provider_id == WireForm.GEMINI.provider and _is_gemini(response):
        return WireForm.GEMINI
    if "updated" in remaining:
        return None  # an interaction of Gemini's, which ends with the words of the Responses API
    word = (response.raw_finish_reason or "").partition(":")[0]
    if word in responses_wire.FINISH_REASONS or _is_output(remaining.get("output")):
        return WireForm.OPENAI_RESPONSES
    if response.metadata.provider_id == WireForm.OLLAMA.provider and isinstance(
        remaining.get("created_at"), str
    ):
        return WireForm.OLLAMA  # or an answer of its generate API: they are indistinguishable
    return None


def _is_gemini(response: ChatResponse) -> bool:
    """Whether an answer of Gemini's provider is of ``generateContent``, and not of its other APIs: by its first event or, if
    that was not kept, by its finish word."""
    if len(response.raw_events):
        return form_of_body(response.raw_events[0]) is WireForm.GEMINI
    word = response.raw_finish_reason or ""
    return word in gemini_wire.FINISH_REASONS or word in gemini_wire.FAILED


def _is_output(value: Any) -> bool:
    """Whether *value* lists the items of a response, each with its position and its type."""
    return isinstance(value, tuple | list) and any(
        isinstance(item, Mapping) and type(item.get("index")) is int and type(item.get("type")) is str
        for item in value
    )


def put_back(said: dict[str, Any], left: Mapping[str, Any], *, over: bool = False) -> None:
    """Put into *said*, a written object, the residue *left* of the original. Written fields stay.

    With *over*, an object with a type replaces the written one: it has no canonical field, so the written object was made up
    as a substitute.
    """
    for name, value in left.items():
        there = said.get(name)
        if isinstance(there, dict) and isinstance(value, dict):
            put_back(there, value, over=over)
        elif isinstance(there, list) and isinstance(value, list):
            _put_items(there, value, over)
        elif there is None or (over and type(there) is type(value)):
            said[name] = value


def _put_items(said: list[Any], left: list[Any], over: bool) -> None:
    """Do the same for lists of objects. An entry without a written counterpart is added if it is whole (has a type)."""
    for position, item in enumerate(left):
        if isinstance(item, dict):
            number, remainder = item.get("index", position), without_place(item)
            if type(number) is int and number < len(said) and isinstance(said[number], dict):
                put_back(said[number], remainder, over=over)
            elif "type" in remainder:
                said.append(remainder)


def without_place(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of several residues, without its position. An ``index`` of the payload gets its own name back."""
    return {
        "index" if name == "own_index" else name: value for name, value in item.items() if name != "index"
    }
