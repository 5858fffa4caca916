"""Deltas as lines of a snapshot: short enough to keep, exact enough that a changed delta shows in the difference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from crosswalk.codec import to_jsonable
from crosswalk.testing.perturbation import show_path
from crosswalk.types.delta import ResponseDelta

__all__ = ["delta_lines"]

_CUT: Final = "¦"
"""Stands between the texts of two deltas."""
_WIDTH: Final = 100
"""A line of at least so many characters takes no further delta."""
_LONGEST: Final = 60
"""How many characters of a value are shown; the response holds all of it."""
_TEXTS: Final = {
    "content_delta": "text",
    "reasoning_delta": "reasoning",
    "refusal_delta": "refusal",
    "arguments_delta": "arguments",
}
_WORD: Final = re.compile(r"[A-Za-z_][\w.:/-]*")


def delta_lines(deltas: Iterable[ResponseDelta]) -> list[str]:
    """Describe *deltas* in lines such as ``text choice=1 | object=chat.completion.chunk: Hel¦lo``.

    A line has the kind of the text, the typed fields, after ``|`` the extensions, and the text. Deltas in a row that differ
    in their text alone share a line, with ``¦`` between their texts. Of log probabilities only the number is shown.
    """
    lines: list[str] = []
    last = None
    for delta in deltas:
        label, text = _describe(delta)
        if text is None:
            lines.append(label)
        elif label == last and len(lines[-1]) < _WIDTH:
            lines[-1] += _CUT + text
        else:
            lines.append(f"{label}: {text}")
        last = None if text is None else label
    return lines


def _describe(delta: ResponseDelta) -> tuple[str, str | None]:
    """What *delta* carries, without the first of its texts; and that text."""
    fields = to_jsonable(delta)
    del fields["index"]
    call = fields.pop("tool_call_delta", {})
    fields = {"call" if name == "index" else name: value for name, value in call.items()} | fields
    logprobs = fields.pop("logprobs", None)
    if logprobs is not None:
        fields["logprobs"] = len(logprobs)
    kind = next((name for name in _TEXTS if name in fields), None)
    text = None if kind is None else fields.pop(kind)
    segment, extensions = fields.pop("segment", {}), fields.pop("extensions", {})
    facts = [*([_TEXTS[kind]] if kind else []), *_facts(fields | segment), *(["|"] if extensions else [])]
    return " ".join([*facts, *_facts(extensions)]), text


def _facts(fields: dict[str, Any]) -> Iterator[str]:
    for name, field in fields.items():
        for path, value in _values(field, (name,)):
            yield f"{show_path(path)}={_shown(value)}"


def _values(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The scalars and empty containers in *value*, each with its path."""
    if value and isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _values(item, (*path, key))
    else:
        yield path, value


def _shown(value: Any) -> str:
    """*value* in short: a word as it is, any other string in single quotes, the rest as JSON."""
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    if len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}({len(value)})"
    return value if _WORD.fullmatch(value) and value not in ("null", "true", "false") else repr(value)
