"""Writes the options of a request into a body, spelled as in :mod:`crosswalk.wire.options`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from crosswalk.request import ChatRequest, Dropped, HTTPRequest
from crosswalk.service.turns import Drops, content_parts, message_of
from crosswalk.types.json import copy_json, thaw
from crosswalk.types.message import ImagePart
from crosswalk.wire.options import FORMATS, NESTED, OPTIONS, WORDS, Grade, Option, format_of_path, put

_PLAIN: Final = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "parallel_tool_calls")
_BY_NAME: Final = {option.name: option for option in OPTIONS}


def put_options(
    body: dict[str, Any],
    request: ChatRequest,
    format: str,
    drops: Drops,
    *,
    but: Collection[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the plain options of *request* into *body*, as *format* spells them. Note in *drops* those that it lacks.

    Args:
        body: the body of the request.
        request: the canonical request.
        format: ``chat``, ``responses``, ``messages``, ``ollama``, ``gemini``, ``bedrock`` or ``cohere``.
        drops: collects the options that cannot be expressed.
        but: options that the caller writes.
        names: the server's own names, for options that have other ones than in *format*.
    """
    for name in _PLAIN:
        value, path = getattr(request, name), names.get(name) or _BY_NAME[name].path(format)
        if name in but or value in (None, ()):
            continue
        if path is None:
            drops.add(name, f"{FORMATS[format][0]} has no such option")
        else:
            put(body, path, list(value) if isinstance(value, tuple) else value)


def spellings_of(format: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the written path of each option by each of its paths in *format*. *names* as for :func:`put_options`."""
    paths = {name: _BY_NAME[name].spellings.get(format, ()) for name in _PLAIN}
    return {path: names.get(name, known[0]) for name, known in paths.items() for path in known}


def words_of(option: str, format: str) -> Mapping[Any, Any]:
    """Return *format*'s spelling of each word of *option* that it has: of ``tool_choice`` or ``reasoning_effort``."""
    return WORDS[option].get(format, {})


def word_of(option: str, value: Any, format: str, drops: Drops) -> Any:
    """Return *format*'s word for the *value* of *option*. If it lacks one, return ``None`` and note that in *drops*."""
    words = words_of(option, format)
    if value is None or value in words:
        return words.get(value)
    *most, last = words
    drops.add(option, f"{FORMATS[format][0]} knows {', '.join(most)} and {last}")
    return None


def with_extra_options(built: HTTPRequest, request: ChatRequest) -> HTTPRequest:
    """Return *built* with those of *request*'s ``extra_options`` that the API has. Add the others to ``dropped``."""
    if not request.extra_options:
        return built
    values, format = thaw(request.extra_options), format_of_path(built.path) or ""
    body, dropped = copy_json(built.body), list(built.dropped)
    done = {one.option for one in dropped}  # by the plugin, which has said how
    for option in OPTIONS:
        if option.name in values and option.name not in done:
            value, path = values[option.name], option.path(format, request.provider)
            written = None if path is None else option.written(value, format)
            if path is None or written is None or not put(body, path, written):
                dropped += _lost(option, value, format, path)
            elif format in option.replaces:
                _take(body, option.replaces[format])
            elif format in option.needs:
                put(body, option.needs[format], True)
    return attrs.evolve(built, body=body, dropped=tuple(dropped))


def unsaid(request: ChatRequest, format: str | None) -> Iterator[Dropped]:
    """Return the details of messages and tools in *request* for which *format* has no word."""
    for location, name, value in _details(request):
        option = NESTED[name]
        if format is not None and value is not None and option.path(format) is None:
            yield from (attrs.evolve(one, option=location) for one in _lost(option, value, format, None))


def _details(request: ChatRequest) -> Iterator[tuple[str, str, Any]]:
    for number, tool in enumerate(request.tools):
        yield f"tools[{number}].strict", "strict", tool.strict
    for number, turn in enumerate(request.messages):
        for inner, part in enumerate(content_parts(message_of(turn))):
            if isinstance(part, ImagePart):
                yield f"messages[{number}].content[{inner}].detail", "detail", part.detail


def _lost(option: Option, value: Any, format: str, path: str | None) -> Iterator[Dropped]:
    grade = option.lost(value, format)
    if grade is Grade.HARMLESS:
        return
    label = FORMATS[format][0] if format else "the API"
    why = f"{label} has no such option"
    if path is not None and format in option.values:
        why = f"{label} knows {' and '.join(map(str, option.values[format].values()))}"
    elif path is not None and option.written(value, format) is None:
        why = f"{label} has no such value"
    elif path is not None:
        why = f"the request says {path} otherwise"
    elif format == "chat" and len(option.spellings) > 1:
        why = "no such option of this server is known"
    yield Dropped(option.name, why, refuses=grade is Grade.DANGEROUS)


def _take(body: dict[str, Any], path: str) -> None:
    *outer, last = path.split(".")
    for step in outer:
        body = body.get(step, {})
    body.pop(last, None)
