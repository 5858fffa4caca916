"""Writes the tables of ``docs/way-back.md``: ``python scripts/way_back.py``.

After each recorded answer in ``tests/captures`` it builds the next request, to the provider of the answer, to every
other one, and after the answer was stored. The tables count the parts of the answer that are in the request, and those that
are reported as left out. ``tests/test_way_back_tables.py`` fails if the page is stale.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import attrs

from crosswalk import (
    ChatMessage,
    ChatResponse,
    CitationRef,
    CrosswalkError,
    SegmentType,
    ToolCall,
    normalize,
    registry,
)
from crosswalk.agent import ChatSession
from crosswalk.plugins import FinishReason, dump_json, load_json
from crosswalk.service import ChatRequest, HTTPRequest, UnsupportedRequestError, build_http_request
from crosswalk.testing import STRICT_PROVIDERS, Capture, load_captures, strict_rules

__all__ = ["PAGE", "current_page"]

ROOT: Final = Path(__file__).parents[1]
CAPTURES: Final = ROOT / "tests/captures"
PAGE: Final = ROOT / "docs/way-back.md"
MARK: Final = "planted by the tables of the way back"


class Kind(StrEnum):
    """A kind of part, in the order of the tables."""

    TEXT = "text"
    REASONING = "plain reasoning"
    SIGNED = "signed or encrypted reasoning"
    CALL = "one call"
    CALLS = "parallel calls"
    FREE_FORM = "free-form call"
    SERVER_TOOL = "server tool"
    CITATION = "citation"
    MEDIA = "media"
    REFUSAL = "refusal"
    CUT = "cut answer"
    FIELD = "unknown field"
    BLOCK = "unknown block"


class Fate(StrEnum):
    """The outcome of a part in the next request."""

    BACK = "back"
    WORDS = "in words"
    NAMED = "named"
    LOST = "lost"
    UNSENT = "no request"


@attrs.frozen
class Part:
    """A part of an answer.

    Attributes:
        kind: its kind.
        values: values that the request must hold if the part is in it.
        words: words, each of which represents it.
        id: the id that by itself shows the same provider that the part is back, or ``None`` if there is none.
    """

    kind: Kind
    values: tuple[str, ...]
    words: tuple[str, ...] = ()
    id: str | None = None


def parts_of(response: ChatResponse) -> Iterator[Part]:
    """Yield the parts of *response* that could go back. If something is planted in it, yield that alone."""
    for kind, mark in ((Kind.FIELD, f"{MARK}: field"), (Kind.BLOCK, f"{MARK}: block")):
        if response.id == mark:
            yield Part(kind, (mark,))
            return
    is_cut = response.finish_reason is FinishReason.LENGTH
    calls = {call.id: call for call in response.tool_calls}
    texts = [one.content.strip() for one in response.segments if one.type is SegmentType.TEXT]
    if any(texts):
        yield Part(Kind.CUT if is_cut else Kind.TEXT, tuple(filter(None, texts)))
    functions: list[ToolCall] = []
    for segment in response.segments:
        about = segment.metadata.thawed()
        match segment.type:
            case SegmentType.REASONING:
                opaque = about.get("signature") or about.get("encrypted")
                if opaque:
                    yield Part(Kind.SIGNED, (opaque,))
                elif segment.content.strip():
                    yield Part(Kind.REASONING, (segment.content.strip(),))
            case SegmentType.TOOL_CALL:
                id = about.get("call_id") or about.get("id")
                if id not in calls or ("type" in about and about["type"] not in _CLIENTS):
                    yield Part(Kind.SERVER_TOOL, tuple(filter(None, (_id_of(about), segment.content))))
                elif about.get("type") == "custom_tool_call" or _kind_of(calls[id]) == "custom":
                    yield Part(Kind.FREE_FORM, (calls[id].name, segment.content))
                elif not is_cut:
                    functions.append(calls[id])
            case SegmentType.CITATION:
                sources = [ref.source for ref in segment.annotations if isinstance(ref, CitationRef)]
                sources += [about.get(key) for key in ("url", "file_id", "title")]
                if segment.content not in response.text:
                    sources.append(segment.content)
                if values := tuple(filter(None, sources)):
                    yield Part(Kind.CITATION, values[:1])
            case SegmentType.MEDIA:
                transcript = tuple(filter(None, [about.get("transcript")]))
                value = about.get("id") or segment.content or about.get("file_id")
                if isinstance(value, str) and value:
                    yield Part(Kind.MEDIA, (value,), transcript or _IN_WORDS)
            case _:
                pass
    for call in functions:
        kind = Kind.CALL if len(functions) == 1 else Kind.CALLS
        yield Part(kind, (call.name, call.arguments), id=call.id)
    if response.refusal and response.finish_reason is not FinishReason.ERROR:
        yield Part(Kind.REFUSAL, (response.refusal,))


_IN_WORDS: Final = ("(an image", "(a sound", "(a file")
_CLIENTS: Final = ("custom_tool_call", "custom", "function", "function_call", "tool_use")
"""The types of calls that the client runs."""


def _id_of(about: dict[str, Any]) -> str | None:
    for key in ("tool_use_id", "call_id", "id"):
        if isinstance(about.get(key), str):
            return str(about[key])
    return None


def _kind_of(call: ToolCall) -> str:
    return str(getattr(call, "kind", "function"))  # older calls do not have this field


# ----------------------------------------------------------------------------- the answers


def answers_of(provider: str) -> list[ChatResponse]:
    """Return the recorded answers of *provider*, and its whole ones with a planted unknown field and block."""
    answers = []
    for capture in load_captures(CAPTURES / provider):
        if capture.status != 200:
            continue
        answer = read(capture.body, provider)
        if answer is not None:
            answers.append(answer)
            if capture.file.suffix == ".json":
                answers += _planted(capture, answer, provider)
    return answers


def read(body: bytes, provider: str) -> ChatResponse | None:
    """Return the answer in *body*, or ``None`` if it cannot be read, or is an error, which ends a conversation."""
    try:
        return normalize(body, provider, unknown="keep").raise_for_error()
    except CrosswalkError:
        return None


def _planted(capture: Capture, response: ChatResponse, provider: str) -> Iterator[ChatResponse]:
    """Yield *response* with a field next to its first text, and with a block after it if texts are blocks there."""
    text = next((one.content for one in response.segments if one.type is SegmentType.TEXT), "")
    for kind in ("field", "block"):
        body = load_json(capture.body)  # a new copy each time
        mark = f"{MARK}: {kind}"
        if text and any(_plant(message, text, kind, mark) for message in _messages_in(body)):
            planted = read(dump_json(body), provider)
            if planted is not None:
                yield attrs.evolve(planted, id=mark)


_MESSAGES: Final = ("message", "content", "output", "steps", "outputs")
"""The keys under which an answer has its message."""


def _messages_in(value: Any) -> Iterator[Any]:
    """Each message in *value*, inside its holder; a text completion has none."""
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        if key in _MESSAGES:
            yield {key: child}
        elif isinstance(child, dict | list):
            yield from _messages_in(child)


def _plant(value: Any, text: str, kind: str, mark: str) -> bool:
    """Plant *mark* next to *text* in *value*. Return whether there was a place for it."""
    children = value.values() if isinstance(value, dict) else value
    for place, child in enumerate(children):
        if not isinstance(child, dict | list):
            continue
        if isinstance(child, dict) and text in [one for one in child.values() if isinstance(one, str)]:
            if kind == "field":
                child["x_unknown"] = mark
                return True
            if isinstance(value, list) and "message" not in child:
                value.insert(place + 1, {"type": "x_unknown", "x_unknown": {"value": mark}})
                return True
            return False
        if _plant(child, text, kind, mark):
            return True
    return False


# ----------------------------------------------------------------------------- the next request


def next_request(response: ChatResponse, target: str) -> HTTPRequest | None:
    """Return the request to *target* that continues after *response*, or ``None`` if it cannot be built."""
    turns: list[Any] = [ChatMessage.user("Hello?"), response]
    turns += [ChatMessage.tool_result(call.id, "{}", name=call.name) for call in response.tool_calls]
    if not response.tool_calls:
        turns.append(ChatMessage.user("And then?"))
    try:
        return build_http_request(ChatRequest(turns, model="m"), target, on_unsupported="drop")
    except UnsupportedRequestError:
        return None


def fates(response: ChatResponse, target: str) -> Iterator[tuple[Kind, Fate]]:
    """Yield the outcome of each part of *response* in the next request to *target*."""
    built = next_request(response, target)
    for part in parts_of(response):
        is_own = target == response.metadata.provider_id
        yield part.kind, Fate.UNSENT if built is None else _fate(part, built, is_own=is_own)


def _fate(part: Part, built: HTTPRequest, *, is_own: bool) -> Fate:
    texts = [*_texts(_answers_in(built.body))]
    if is_own and part.id in texts:
        return Fate.BACK
    if all(any(_holds(text, value) for text in texts) for value in part.values):
        is_told = part.kind in (Kind.CALL, Kind.CALLS, Kind.FREE_FORM) and part.values[0] not in texts
        return Fate.WORDS if is_told else Fate.BACK
    if any(word in text for word in part.words for text in texts):
        return Fate.WORDS
    reasons = [one.reason for one in built.adaptations if one.field == "messages[1]"]
    is_named = any(word in reason for word in _NAMES[part.kind] for reason in reasons)
    return Fate.NAMED if is_named else Fate.LOST


_NAMES: Final = {
    Kind.TEXT: ("text",),
    Kind.REASONING: ("reasoning",),
    Kind.SIGNED: ("reasoning", "encrypted", "signature"),
    Kind.CALL: ("call",),
    Kind.CALLS: ("call",),
    Kind.FREE_FORM: ("call",),
    Kind.SERVER_TOOL: ("server tool",),
    Kind.CITATION: ("citations",),
    Kind.MEDIA: ("picture", "sound", "file", "video"),
    Kind.REFUSAL: ("refusal",),
    Kind.CUT: ("text",),
    Kind.FIELD: ("state",),
    Kind.BLOCK: ("state",),
}
"""A word of the reason that names each kind of part."""


def _answers_in(body: Any) -> list[Any]:
    """Return the messages or items of *body* from the model."""
    turns = body.get("messages") or body.get("contents") or body["input"]
    return [
        turn
        for turn in turns
        if turn.get("role") in ("assistant", "model", None)
        and not str(turn.get("type")).endswith("_call_output")
    ]


def _texts(value: Any) -> Iterator[str]:
    """Yield each text in *value*, and each object and array as canonical JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        yield _canonical(value)
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _holds(text: str, value: str) -> bool:
    escaped = dump_json(value).decode()[1:-1]
    if value in text or escaped in text:
        return True
    parsed = _parsed(value) if value[:1] in "{[" else None
    return parsed is not None and parsed == _parsed(text)


@functools.lru_cache(4096)
def _parsed(text: str) -> str | None:
    try:
        return _canonical(load_json(text or "{}"))
    except ValueError:
        return None


def _canonical(value: Any) -> str:
    return dump_json(_sorted(value)).decode()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [*map(_sorted, value)] if isinstance(value, list) else value


# ----------------------------------------------------------------------------- the tables


def providers() -> list[str]:
    """The providers that requests can be built for."""
    names = (entry.name for entry in registry.providers())
    return sorted(name for name in names if registry.mapper(name).build_request is not None)


Counts = defaultdict[tuple[str, Kind], Counter[Fate]]


def own_table(answers: dict[str, list[ChatResponse]]) -> Iterator[str]:
    """Yield a row for each provider and kind: the same provider, and the same after save and load."""
    now: Counts = defaultdict(Counter)
    stored: Counts = defaultdict(Counter)
    for provider, responses in answers.items():
        for response in responses:
            session = ChatSession([ChatMessage.user("Hello?"), response])
            again = ChatSession.from_json(session.to_json()).turns[1]
            assert isinstance(again, ChatResponse)
            for counts, one in ((now, response), (stored, again)):
                for kind, fate in fates(one, provider):
                    counts[provider, kind][fate] += 1
    yield from ("| provider | part | same provider | after save and load |", "|---|---|---|---|")
    for provider in answers:
        for kind in Kind:
            if direct := now[provider, kind]:
                yield f"| {provider} | {kind} | {_cell(direct)} | {_cell(stored[provider, kind])} |"


def others_table(answers: dict[str, list[ChatResponse]]) -> Iterator[str]:
    """Yield a row for each kind and outcome: the providers with this outcome for part of another one's answer."""
    counts: Counts = defaultdict(Counter)
    for source, responses in answers.items():
        for response in responses:
            for target in providers():
                if target != source:
                    for kind, fate in fates(response, target):
                        counts[target, kind][fate] += 1
    yield from ("| part | outcome | at |", "|---|---|---|")
    for kind in Kind:
        rows: defaultdict[str, list[str]] = defaultdict(list)
        for target in providers():
            if received := counts[target, kind]:
                rows[_cell(received)].append(target)
        for outcome, targets in sorted(rows.items(), key=lambda row: (-len(row[1]), row[0])):
            yield f"| {kind} | {outcome} | {_names(targets)} |"


def rules_table() -> Iterator[str]:
    """Yield a row for each rule of each strict server."""
    yield from ("| provider | rule | source |", "|---|---|---|")
    for provider in STRICT_PROVIDERS:
        for rule in strict_rules(provider).rules:
            url, _, note = rule.source.partition(" ")
            label = re.sub(r"^https://(www\.)?(github\.com/)?", "", url).rstrip("/")
            yield f"| {provider} | {rule.name} | [{label}]({url}){' ' + note if note else ''} |"


def _names(targets: list[str]) -> str:
    others = [name for name in providers() if name not in targets]
    if not others:
        return "all"
    if len(others) <= 5:
        return f"all but {', '.join(others)}"
    return ", ".join(targets)


def _cell(counts: Counter[Fate]) -> str:
    """Return ``back`` if all parts had this outcome, or else each outcome with its count."""
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(f"{fate} {counts[fate]}" for fate in Fate if counts[fate])


def current_page() -> str:
    """Return the current page: its text, with new tables."""
    answers = {name: answers_of(name) for name in providers()}
    tables: dict[str, Iterable[str]] = {
        "own": own_table(answers),
        "others": others_table(answers),
        "rules": rules_table(),
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: written by scripts/way_back.py -->", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = "\n".join([head + begin, "", *lines, "", end + rest.partition(end)[2]])
    return page


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
