"""What a body says, and who says it in the conversation."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = [
    "MARKER",
    "Place",
    "empties",
    "is_text",
    "leaves",
    "marker_in",
    "said_text",
    "speaker_of",
    "text_in_base64",
    "value_at",
    "written",
]

Place = tuple[str | int, ...]
MARKER: Final = re.compile(r"zq\d{5}x")
"""What stands in each text of a row, and nowhere else."""
_BASE64: Final = re.compile(r"(?:base64,)?([A-Za-z0-9+/=]{16,})$")


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each value that holds no others, with its place. Empty objects and lists count, ``null`` does not."""
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            yield from leaves(one, (*place, key))
    elif isinstance(value, list) and value:
        for index, one in enumerate(value):
            yield from leaves(one, (*place, index))
    elif value is not None:
        yield place, value


def value_at(body: Any, place: Place) -> Any:
    """Return what stands at *place*, or ``None``."""
    for step in place:
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return None
    return body


def written(place: Place) -> str:
    """Return *place* as a JSON path."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def text_in_base64(text: str) -> str:
    """Return what *text* holds in base64, or nothing."""
    found = _BASE64.search(text)
    if found is None:
        return ""
    try:
        return base64.b64decode(found[1]).decode("utf-8", "ignore")
    except ValueError:
        return ""


def said_text(body: Any) -> str:
    """Return all that *body* says as one text, with what it holds in base64."""
    found = [json.dumps(body, ensure_ascii=False)]
    found += [text_in_base64(value) for _, value in leaves(body) if isinstance(value, str)]
    return "\n".join(found)


@functools.lru_cache(maxsize=100_000)
def marker_in(text: str) -> str | None:
    """Return the marker in *text*, plain or in base64."""
    found = MARKER.search(text) or MARKER.search(text_in_base64(text))
    return None if found is None else found[0]


_SYSTEM: Final = ("system", "instructions", "systemInstruction", "system_instruction")
_DECLARING: Final = ("tools", "functions", "toolConfig", "tool_config")
_RESULTS: Final = ("functionResponse", "toolResult", "function_response")
_OF_MODEL: Final = ("reasoning", "program", "program_output", "compaction")
"""Items that a model or its server makes. OpenAI's server runs a program itself: "the result produced by the program item"."""
_ROLES: Final = {
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "assistant": "assistant",
    "model": "assistant",
}


def speaker_of(body: Any, place: Place) -> str:
    """Return who says what stands at *place*: ``system``, ``user``, ``assistant`` or ``tool``; else ``tools`` or ``option``."""
    if place and place[0] in _SYSTEM:
        return "system"
    if place and place[0] in _DECLARING:
        return "tools"
    speaker, value = "option", body
    for step in place:
        if isinstance(value, Mapping):
            kind, role = str(value.get("type", "")), value.get("role")
            if role != "user":
                speaker = _ROLES.get(str(role), speaker)
            elif speaker == "option":
                speaker = "user"
            if kind in _OF_MODEL and speaker == "option":
                speaker = "assistant"
            elif kind == "function_call_output" and "call_id" not in value:
                speaker = "user"  # the output of no call: the client tells it
            elif kind in ("additional_tools", "tool_definition"):
                return "tools"
            elif kind in ("tool_addition", "tool_removal"):
                speaker = "system"  # as Converse's types demand (``ToolAdditionBlock``)
            elif (kind.endswith("_output") and kind not in _OF_MODEL) or (
                kind == "tool_result" or step in _RESULTS
            ):
                speaker = "tool"
            elif speaker == "option" and kind.endswith("_call"):
                speaker = "assistant"
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break
    return speaker


_TEXT_FIELDS: Final = frozenset(
    [
        "text",
        "content",
        "output",
        "input",
        "instructions",
        "system",
        "arguments",
        "args",
        "parameters",
        "response",
        "result",
        "refusal",
        "thinking",
        "parts",
        "reasoning",
        "reasoning_content",
        "prompt",
    ]
)


def is_text(place: Place) -> bool:
    """Whether a text at *place* is read as what is said, and not as a title, an address or data."""
    return next((step for step in reversed(place) if isinstance(step, str)), "") in _TEXT_FIELDS


_BESIDE_CONTENT: Final = [
    "tool_calls",
    "toolCalls",
    "function_call",
    "refusal",
    "reasoning",
    "reasoning_content",
    "thinking",
    "audio",
    "images",
    "tool_plan",
    "reasoning_details",
]


def empties(body: Any) -> Iterator[Place]:
    """Yield the turns, parts and results of *body* that say nothing."""
    for place, value in leaves(body):
        if place and place[-1] in ("content", "output", "parts") and value in ("", [], {}):
            turn = value_at(body, place[:-1])
            if not (isinstance(turn, Mapping) and any(turn.get(field) for field in _BESIDE_CONTENT)):
                yield place
