"""The response to a payload that fits several providers, if all of them read the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import combinations_with_replacement, groupby, repeat
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from crosswalk.codec.canonical import to_json
from crosswalk.errors import CrosswalkError, IncompleteStreamError
from crosswalk.mapping.detect import ask
from crosswalk.plugin.registry import Mapper, Registry
from crosswalk.types.json import FrozenObject, dump_json, load_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import altered

Read: TypeAlias = Callable[[Mapper, bytes], ChatResponse]
"""Reads an answer as a provider does. A generated id and time must be the same each time."""


def agreed(
    candidates: Iterable[str],
    registry: Registry,
    events: Iterable[object],
    data: bytes,
    read: Read,
    *,
    status: int = 200,
) -> ChatResponse | None:
    """Return the response that all *candidates* read, apart from their id, or ``None`` if they read different ones.

    If all of them read the same part of an answer that is cut, that failure is raised.

    It has the id of the original dialect (``ProviderInfo.is_original``), or of the first candidate by name.
    ``provenance`` marks the id as derived.

    Args:
        candidates: the ids of providers that recognize the payload equally well.
        registry: the registry of the providers.
        events: the first events of the payload, decoded.
        data: the payload.
        read: reads it for a provider.
        status: the HTTP status. Each candidate reads an error with its own hook.

    Raises:
        IncompleteStreamError: that failure. ``partial`` has the part.
    """
    name = agreeing(candidates, registry, events, data, read, status=status)
    if name is None:
        return None
    try:
        response, failure = _outcome(read, registry.mapper(name), data)
    except CrosswalkError:
        return None
    if failure is not None:
        failure.partial = as_guessed(response)
        raise failure
    return as_guessed(response)


def agreeing(
    candidates: Iterable[str],
    registry: Registry,
    events: Iterable[object],
    data: bytes,
    read: Read,
    *,
    status: int = 200,
) -> str | None:
    """Return the id of the response that :func:`agreed` returns for the same arguments, or ``None``."""
    # An override changes how its own answers are read, not whether the shipped providers agree.
    mappers = {
        name: registry.shipped(name) if registry.is_shipped(name) else registry.mapper(name)
        for name in sorted(candidates)
    }
    event_list = list(events)
    name = next((name for name, one in mappers.items() if _is_original(one, event_list)), min(mappers))

    def reader(name: str) -> object:
        return (
            name
            if status >= _ERROR_STATUS or not registry.is_shipped(name)
            else _hooks(mappers[name], event_list)
        )

    # One of the candidates that are bound to read the same reads for all.
    mapper_by_reader = {reader(other): mapper for other, mapper in mappers.items()}
    del mapper_by_reader[reader(name)]
    if not mapper_by_reader:
        return name
    verdicts = _VERDICTS.setdefault(registry, {})
    verdict_key = None
    if all(map(registry.is_shipped, mappers)):
        shape_digest, data = _shape(data)
        verdict_key = None if shape_digest is None else (status, shape_digest, *mappers.values())
    if verdict_key is not None and verdict_key in verdicts:
        return name if verdicts[verdict_key] else None
    is_same = _is_same(read, data, mappers[name], mapper_by_reader.values())
    if verdict_key is not None:
        if len(verdicts) >= _MOST_VERDICTS:
            verdicts.clear()
        verdicts[verdict_key] = is_same
    return name if is_same else None


_ERROR_STATUS: Final = 400
_MOST_VERDICTS: Final = 2048
_VERDICTS: Final[WeakKeyDictionary[Registry, dict[tuple[Hashable, ...], bool]]] = WeakKeyDictionary()
"""Whether all candidates read the same, by the status, the shape of the answer and the candidates themselves: a plugin that
is registered anew has another mapper.
"""
_DISSENTS: Final[Counter[str]] = Counter()
"""How often each provider read something else. The most frequent one is asked first, which changes no verdict."""


def _is_same(read: Read, data: bytes, first_mapper: Mapper, other_mappers: Iterable[Mapper]) -> bool:
    """Whether *other_mappers* read the same from *data* as *first_mapper*."""
    try:
        response, failure = _outcome(read, first_mapper, data)
        first_outcome = _content(response), type(failure)
        for mapper in sorted(other_mappers, key=lambda mapper: -_DISSENTS[mapper.provider]):
            response, failure = _outcome(read, mapper, data)
            if (_content(response), type(failure)) != first_outcome:
                _DISSENTS[mapper.provider] += 1
                return False
    except CrosswalkError:
        return False
    return True


# ---------------------------------------------------------------------------------- shapes
# Bodies of one shape are read alike by the same providers. They differ only in texts, ids, times and counts of tokens, and
# what hooks may see in these is part of the shape: how texts begin and end, the tags in them, whether they are JSON, which
# ones are the same or begin alike, and which counts are the sum of others. Every other value is part of it as it is.


_TEXT_KEYS: Final = frozenset({"content", "text", "reasoning", "reasoning_content", "refusal"})
_ID_KEYS: Final = frozenset({"id", "request_id", "system_fingerprint", "tool_call_id"})
_TIME_KEYS: Final = frozenset({"created", "created_at"})
_ID_PATTERN: Final = re.compile(r"((?:[A-Za-z]+[-_]+)*)([\w-]*)", re.ASCII)
_TAG_PATTERN: Final = re.compile(r"<[|/]*\w*")
_DIGIT_PATTERN: Final = re.compile(r"\d")
_WORD_PATTERN: Final = re.compile(r"[!-~]{,24}")
_MARKS_PATTERN: Final = re.compile(r"\W{0,16}")
_JSON_BRACKETS: Final = ("{", "[")
_TIME_RANGE: Final = range(10**9, 10**10)
_COUNT_RANGE: Final = range(1, 10**9)
_MOST_TEXTS: Final = 16
_MOST_COUNTS: Final = 12
_LONG_ID_LENGTH: Final = 12
_MOST_CALLS: Final = 32


def shape_of(body: Any) -> list[Hashable]:
    """Return all of *body* that decides how it is read."""
    parts: list[Hashable] = []
    texts: list[str] = []
    counts: list[int] = []
    numbers: dict[str, int] = {}

    def add(key: str, value: Any) -> None:
        kind = type(value)
        if kind is dict:
            parts.append("{")
            for name, item in value.items():
                parts.append(name)
                add(name, item)
            parts.append("}")
        elif kind is list:
            parts.append("[")
            for item in value:
                add(key, item)
            parts.append("]")
        elif kind is str:
            form: Hashable = value
            if (key in _TEXT_KEYS and len(texts) < _MOST_TEXTS) or key == "arguments":
                form = _form(value)
            elif key in _ID_KEYS:
                form = _form_of_id(value)
            if key in _TEXT_KEYS:
                texts.append(value)
            parts.append((form, numbers.setdefault(value, len(numbers))))
        elif kind is int and key in _TIME_KEYS and value in _TIME_RANGE:
            parts.append(("time",))
        elif kind is int and key.endswith("_tokens") and value in _COUNT_RANGE:
            counts.append(value)
            parts.append(("count",))
        else:
            parts.append((value,))

    add("", body)
    prefix_flags = [one.startswith(other) for one in texts[:_MOST_TEXTS] for other in texts[:_MOST_TEXTS]]
    return [*parts, *prefix_flags, *_relations(counts)]


def _form_of_id(text: str) -> Hashable:
    """Return how the id *text* is made. One without a digit may be a word with a meaning, such as ``null``."""
    match = _ID_PATTERN.fullmatch(text)
    if match is None or _DIGIT_PATTERN.search(match[2]) is None:
        return text
    return match[1], min(len(match[2]), _LONG_ID_LENGTH), match[2].isdecimal()


def _form(text: str) -> Hashable:
    """Return how *text* begins and ends, the tags in it, and the type of the JSON that it is. A single word stays."""
    stripped = text.strip()
    if _WORD_PATTERN.fullmatch(stripped):
        return text
    marks_match = _MARKS_PATTERN.match(stripped)
    json_type = None
    if stripped.startswith(_JSON_BRACKETS):
        try:
            json_type = type(load_json(stripped)).__name__
        except ValueError:
            json_type = "damaged"
    tight_ends = text[0] == stripped[0], text[-1] == stripped[-1]
    return marks_match and marks_match[0], json_type, *tight_ends, *sorted({*_TAG_PATTERN.findall(text)})


def _relations(counts: list[int]) -> Iterable[Hashable]:
    """Return the order of *counts*, and which of them are the sum of two or three."""
    values = sorted({*counts})
    if len(values) > _MOST_COUNTS:
        return counts
    rank_by_value = {value: number for number, value in enumerate(values)}
    sums = (
        (rank_by_value[sum(addends)], *(rank_by_value[value] for value in addends))
        for size in (2, 3)
        for addends in combinations_with_replacement(values, size)
        if sum(addends) in rank_by_value
    )
    return [*(rank_by_value[count] for count in counts), *sums]


def _shape(data: bytes) -> tuple[bytes | None, bytes]:
    """Return a digest of the shape of the answer *data*, or ``None``, and what is to be read of it."""
    parts: list[Hashable] | None = None
    body = None
    if data.lstrip()[:1] == b"{":
        with suppress(ValueError):  # several objects, or a damaged one
            body = load_json(data)
    if body is not None:
        body, data = _shortened(body, data)
        parts = shape_of(body)
    else:
        parts = shape_of_stream(data)
    digest = None if parts is None else sha256(repr(parts).encode(errors="surrogatepass")).digest()
    return digest, data


def _shortened(body: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return *body* and its bytes *data*. Of very many alike calls in a message, the first ones stay."""
    choices = body.get("choices")
    is_whole = True
    for choice in choices if type(choices) is list else ():
        message: Any = choice.get("message") if type(choice) is dict else None
        calls: Any = message.get("tool_calls") if type(message) is dict else None
        if (
            type(calls) is list
            and len(calls) > _MOST_CALLS
            and "function_call" not in message
            and _are_alike(calls)
        ):
            del calls[_MOST_CALLS:]
            is_whole = False
    return body, data if is_whole else dump_json(body)


def _are_alike(calls: list[Any]) -> bool:
    """Whether *calls* have their own ids and numbers, and the later ones no shape that the first ones lack."""
    if not all(type(call) is dict and call.get("index", place) == place for place, call in enumerate(calls)):
        return False
    ids = [call["id"] for call in calls if "id" in call]
    if not all(type(one) is str for one in ids) or len({*ids}) != len(ids):
        return False
    shapes = [repr(shape_of({**call, "index": "index" in call})) for call in calls]
    return {*shapes[_MOST_CALLS:]} <= {*shapes[:_MOST_CALLS]}


# Streams of chunks are as alike as bodies if their pieces are mere text. A run of chunks that differ in nothing else is then
# as good as two of them. A stream with other texts, such as calls, tags or log probabilities, has no shape: each candidate
# reads it.

_PIECE: Final = re.compile(
    rb"""("(?:delta": ?\{|choices": ?\[\{)(?:"\w+": ?(?:null|0|""|"assistant"), ?)*"""
    rb'''"(content|reasoning|reasoning_content|text)": ?)"((?:[^"\\]|\\.)+)"'''
)
_PADDING: Final = re.compile(rb'("(?:obfuscation|p)": ?)"\w+"')
_NO_MERE_TEXT: Final = re.compile(rb"[<>|]|\\u0000|\\u[dD][89a-fA-F]")
_PLACES: Final = {True: rb'"\u0000again"', False: rb'"\u0000"'}
"""What stands for a piece of text, which may begin with all that came before it."""
_WORDS: Final = {
    "id",
    "object",
    "model",
    "role",
    "finish_reason",
    "system_fingerprint",
    "service_tier",
    "obfuscation",
    "p",
}
"""The keys of texts that are no text of the answer."""
_MOST_EVENTS: Final = 32


def shape_of_stream(data: bytes) -> list[Hashable] | None:
    """Return all of the stream *data* that decides how it is read, or ``None`` if it has more than pieces of mere text."""
    if _NO_MERE_TEXT.search(data):
        return None
    texts: dict[bytes, bytearray] = {}

    def place(match: re.Match[bytes]) -> bytes:
        so_far = texts.setdefault(match[2], bytearray())
        is_again = bool(so_far) and match[3].startswith(so_far)
        so_far += match[3]
        return match[1] + _PLACES[is_again]

    prefix, end = (b"", b"\n") if data[:1] == b"{" else (b"data:", b"\n\n")
    template = _PADDING.sub(rb'\1"-"', _PIECE.sub(place, data))
    events: list[Any] = []
    try:
        for block, run in groupby(template.split(end)):
            event: Any = block
            if block not in (b"", b"data: [DONE]"):
                event = load_json(block.removeprefix(prefix)) if block.startswith(prefix) else None
                if type(event) is not dict or not _has_mere_text(event, ""):
                    return None
            events += [event for event, _ in zip(repeat(event, 2), run, strict=False)]
            if len(events) > _MOST_EVENTS:
                return None
        whole = [(name, _form(load_json(b'"%b"' % bytes(text)))) for name, text in sorted(texts.items())]
    except ValueError:  # damaged
        return None
    return [*shape_of(events), *whole]


def _has_mere_text(value: Any, key: str) -> bool:
    """Whether the part *value* of a chunk has no texts but pieces of the first choice, and words."""
    if type(value) is dict:
        return all(_has_mere_text(item, name) for name, item in value.items())
    if type(value) is list:
        return all(_has_mere_text(item, key) for item in value)
    if type(value) is str:
        return key in _WORDS or value[:1] in ("", "\0")
    return key != "index" or value == 0


def _outcome(read: Read, mapper: Mapper, data: bytes) -> tuple[ChatResponse, IncompleteStreamError | None]:
    """Return what *mapper* reads, or the part of a cut answer with the failure."""
    try:
        return read(mapper, data), None
    except IncompleteStreamError as error:
        failure = error
    assert failure.partial is not None, "the reader says what came"
    return failure.partial, failure


def _hooks(mapper: Mapper, events: Iterable[object]) -> tuple[object, ...]:
    """Return all that decides how *mapper* reads *events*: the hooks of the dialect that they are in, and the framing."""
    dialect = next(filter(None, map(mapper.dialect_of, events)), mapper)
    hooks = dialect.map_delta, dialect.map_usage, dialect.map_finish_reason, dialect.extensions
    return *hooks, mapper.info.framing, mapper.info.text_events


def as_guessed(response: ChatResponse) -> ChatResponse:
    """*response* with the word that its provider was worked out: others answer like that, too."""
    provenance = {**response.metadata.provenance, "metadata.provider_id": Provenance.DERIVED}
    return altered(response, metadata=altered(response.metadata, provenance=provenance))


def _content(response: ChatResponse) -> bytes:
    """The canonical JSON of *response* without its provider, and without nulls among its extensions, which say nothing."""
    extensions = FrozenObject(_without_nulls(response.metadata.extensions) or {})
    return to_json(
        altered(response, metadata=altered(response.metadata, provider_id="-", extensions=extensions))
    )


def _without_nulls(value: Any) -> Any:
    """Return *value* without nulls and what holds nothing else, or ``None`` if nothing is left."""
    if isinstance(value, Mapping):
        fields = {
            name: remainder for name, item in value.items() if (remainder := _without_nulls(item)) is not None
        }
        return None if fields.keys() <= _INDEX_KEYS else fields
    if isinstance(value, list | tuple):
        items = [_without_nulls(item) for item in value]
        return None if all(item is None for item in items) else items
    return value


_INDEX_KEYS: Final = {"index"}
"""What is left of a choice that was read whole."""


def _is_original(mapper: Mapper, events: Iterable[object]) -> bool:
    """Whether *events* are in the provider's own dialect, which others took over."""
    return mapper.info.is_original and any(ask(mapper.recognizes, event) for event in events)
