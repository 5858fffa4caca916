"""The fields that did not reach the client or the server, in the words of the server's API, for headers and logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from crosswalk.codec.problems import step
from crosswalk.convert import Loss, WireForm
from crosswalk.convert.rules import ENVELOPE
from crosswalk.convert.source import source_form
from crosswalk.types import ChatResponse
from crosswalk.wire import chat, messages, ollama, responses

__all__ = ["dropped", "dropped_fields", "header_of"]

_COUNTS: Final = {
    WireForm.OPENAI_CHAT: ("usage.", chat.COUNTS),
    WireForm.OPENAI_RESPONSES: ("usage.", responses.COUNTS),
    WireForm.ANTHROPIC: ("usage.", messages.COUNTS),
    WireForm.OLLAMA: ("", ollama.COUNTS),
}
"""Where each API has its token counts."""
_CONTENT: Final = {
    WireForm.OPENAI_CHAT: "choices[0].message.",
    WireForm.OPENAI_RESPONSES: "output[].",
    WireForm.ANTHROPIC: "content[].",
    WireForm.OLLAMA: "message.",
}
"""Where each API has what the model said."""
_OPAQUE: Final = {WireForm.OPENAI_RESPONSES: "encrypted_content", WireForm.ANTHROPIC: "data"}
"""The name of encrypted reasoning."""
_EXTENSIONS: Final = "metadata.extensions"
_MOST: Final = 20
_LONGEST: Final = 1000


def dropped_fields(losses: Iterable[Loss], response: ChatResponse) -> list[str]:
    """The fields of the server's answer that the client does not get.

    Args:
        losses: those of the report of the conversion, without the harmless ones.
        response: the converted answer.
    """
    form = source_form(response)
    results: list[str] = []
    for loss in losses:
        results += _names(loss.path, response, form)
    return results


def _names(path: str, response: ChatResponse, form: WireForm | None) -> Iterator[str]:
    """The names of the field *path* of *response*, a canonical path, in the server's API."""
    if path.startswith(_EXTENSIONS):
        for location, name in _leaves("metadata.extensions", "", response.metadata.extensions.thawed()):
            if location == path or location.startswith((f"{path}.", f"{path}[")):
                yield name.removeprefix(".")
    elif path.startswith("usage."):
        count = path.removeprefix("usage.")
        prefix, names = _COUNTS.get(form, ("usage.", {})) if form else ("usage.", {})
        yield prefix + names.get(count, count)
    elif path.startswith("segments["):
        yield from _segment(path, response, form)
    elif path not in ENVELOPE:
        yield path


def _leaves(path: str, name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values below *path* that say something: the canonical path of each, and its *name* in the server's API.

    They differ in lists: of a list of objects only those with further fields are kept, each with its place as ``index``.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ENVELOPE:
                yield from _leaves(path + step(key), name + step(key), inner)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for position, item in enumerate(value):
            number = item.get("index", position) if isinstance(item, dict) else position
            yield from _leaves(f"{path}[{position}]", f"{name}[{number}]", item)
    elif value not in (None, "", [], 0) or value is False:
        yield path, name


def _segment(path: str, response: ChatResponse, form: WireForm | None) -> Iterator[str]:
    """The name of a part of the answer, or of a field of it."""
    location, _, field = path.removeprefix("segments[").partition("]")
    segment = response.segments[int(location)]
    name = field.removeprefix(".metadata").removeprefix(".").partition(".")[0]
    prefix = "" if form is None else _CONTENT.get(form, "")
    if name in ENVELOPE:
        return
    if name == "encrypted" and form in _OPAQUE:
        name = _OPAQUE[form]
    is_part = name in ("", "content") or name.startswith("annotations") or not prefix
    yield f"{prefix}{segment.type}{field.replace('.metadata', '', 1)}" if is_part else f"{prefix}{name}"


def dropped(response: ChatResponse) -> list[str]:
    """The parts of the request that the server of *response* did not get, with the reasons, and what it got unasked."""
    extra: Any = response.attempts[-1].extra if response.attempts else {}
    left_out = [f"{one['option']}: {one['reason']}" for one in extra.get("dropped", ())]
    return [f"request.{name}" for name in (*left_out, *extra.get("added", ()))]


def header_of(paths: Iterable[str]) -> str:
    """*paths* as the value of a header: each once, in plain characters, at most 20 of them and 1,000 characters."""
    unique = list(dict.fromkeys(paths))
    raw: list[str] = []
    length = 0
    for path in unique[:_MOST]:
        plain = "".join(c if " " <= c <= "~" else "?" for c in path.replace(",", ";"))
        length += len(plain) + 2
        if length > _LONGEST:
            break
        raw.append(plain)
    more = len(unique) - len(raw)
    return ", ".join([*raw, f"and {more} more"] if more else raw)
