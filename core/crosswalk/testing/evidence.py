"""What the recordings show of a server, and declarations of a plugin that they do not bear out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from crosswalk.mapping.fields import FieldRow, stated_rows
from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture
from crosswalk.testing.case import Case, decoded, strings
from crosswalk.testing.pairing import normalized
from crosswalk.testing.perturbation import MISSING, Leaf, Path, at, leaves, nodes, scalars, show_path
from crosswalk.testing.problems import Problem
from crosswalk.testing.requests import unasked
from crosswalk.types.usage import OPENAI_COUNT_PATHS as DETAILS, OPENAI_COUNTS as COUNTS
from crosswalk.types.values import ErrorKind, FinishReason

# ----------------------------------------------------------------------------------- signs
# What looks like a part of an answer that the canonical types have a place for, whatever the plugin makes of it.


_TOOL = re.compile(r"call|tool|function", re.IGNORECASE)
_TOOL_NAME = re.compile(r"name|tool|function|(tool|function)_?name", re.IGNORECASE)
_ARGUMENTS = re.compile(r"arguments|args|input|param(eter)?s", re.IGNORECASE)
_CHOICES = re.compile(r"(choice|candidate|completion|alternative|sequence|generation|beam)s?", re.IGNORECASE)
_LOGPROBS = re.compile(r"(token_?)?log_?prob(abilitie)?s?", re.IGNORECASE)
_THOUGHT = re.compile(r".*(think|thought|reasoning).*", re.IGNORECASE)
_MODEL = re.compile(r"(model|engine)(_?(id|name|version))?", re.IGNORECASE)
_ERROR = re.compile(r"errors?|fault|failure", re.IGNORECASE)
_TOKENS = re.compile(r"(?!max).*(tokens?|token_?count)", re.IGNORECASE)
_MEDIA = re.compile(r"data:(image|audio|video)/|iVBORw0KGgo|/9j/|R0lGOD|UklGR")
"""The start of a data URL, or of a picture or a sound in base64."""
_CALL_ID = re.compile(r"(tool)?_?(call|use)?_?id", re.IGNORECASE)
_ID = re.compile(r"(?=.*\d)(?=.*[^\d.])[\w.-]+")
"""An id that is none of the plain numbers and words that a server gives to every call."""
_ECHO = re.compile(r"prompt|request|settings|config|options", re.IGNORECASE)
"""The keys of what a server repeats of the request."""


def _is_call(key: str, value: dict[str, Any]) -> bool:
    """Whether *value* has the name of a tool and its arguments, which are no JSON Schema."""
    texts = {name for name, one in value.items() if isinstance(one, str)}
    objects = {name for name, one in value.items() if isinstance(one, dict) and one.get("type") != "object"}
    names = {name for name in texts if value[name] and _TOOL_NAME.fullmatch(name)}
    is_of_tool = bool(objects) and any(map(_TOOL.search, (key, *names)))
    return bool(names) and (is_of_tool or any(map(_ARGUMENTS.fullmatch, texts | objects)))


def _has_logprobs(value: dict[str, Any]) -> bool:
    """Whether *value* has the logarithm of a probability beside a text, or an array of them beside one of texts."""
    items = [
        (name, isinstance(one, list), item)
        for name, one in value.items()
        for item in (one if isinstance(one, list) else [one])
    ]
    text_shapes = {is_array for _, is_array, item in items if isinstance(item, str)}
    return any(
        is_array in text_shapes and type(item) is float and item <= 0 and _LOGPROBS.fullmatch(name)
        for name, is_array, item in items
    )


def _kinds_of(path: Path, value: Any) -> Iterator[str]:
    """Yield what *value* at *path* of an event looks like, by the names of :data:`_FIELDS`."""
    names = [name for name in path if isinstance(name, str)] or [""]
    key = names[-1]
    is_error = value and len(path) < 3 and _ERROR.fullmatch(key)  # deeper ones are of tools
    signs: dict[str, Any] = {}
    if any(map(_ECHO.search, names)):
        return
    if isinstance(value, dict):
        is_counts = len(value) > 1 and len(names) == len(path) and {*map(type, value.values())} == {int}
        index = value.get("index")
        is_second = _CHOICES.fullmatch(key) and isinstance(index, int) and index > 0
        signs = {"calls": _is_call(key, value), "log probabilities": _has_logprobs(value)}
        signs |= {"counts": is_counts, "a second choice": is_second, "an error": is_error}
    elif isinstance(value, list):
        signs = {"a second choice": _CHOICES.fullmatch(key) and len(value) > 1}
    elif isinstance(value, str):
        is_thought = _THOUGHT.fullmatch(key) and " " in value.strip()
        signs = {"reasoning": is_thought, "an image": _MEDIA.match(value), "an error": is_error}
        signs["a model"] = value and _MODEL.fullmatch(key)
    else:
        signs = {"counts": type(value) is int and value > 0 and _TOKENS.fullmatch(key)}
    yield from (name for name, sign in signs.items() if sign)


_FIELDS: Final = {
    "calls": "calls",
    "a second choice": "alternatives",
    "log probabilities": "logprobs",
    "reasoning": "reasoning",
    "an image": "media",
    "a model": "model",
    "an error": "error",
    "counts": "usage",
}
"""What a recording may hold, with the canonical field for it."""


def _signs(events: list[Any]) -> dict[str, Leaf]:
    """Return what *events* seem to hold, by the names of :data:`_FIELDS`, each with the first leaf that looks like it."""
    found: dict[str, Leaf] = {}
    for number, event in enumerate(events):
        for path, value in nodes(event):
            for name in _kinds_of(path, value):
                found.setdefault(name, Leaf(number, path, None))
    return found


def _read(response: dict[str, Any]) -> set[str]:
    """Return what *response* holds, by the names of :data:`_FIELDS`, or ``a refusal``."""
    choices = [response, *response.get("alternatives", ())]
    types = {part["type"] for choice in choices for part in choice.get("segments", ())}
    marks = response["metadata"].get("provenance", {})
    is_error = response["finish_reason"] == "error"
    is_held = {
        "calls": "tool_call" in types,
        "a second choice": len(choices) > 1,
        "log probabilities": any(choice.get("logprobs") for choice in choices),
        "reasoning": "reasoning" in types,
        "a refusal": "refusal" in types,
        "an image": "media" in types,
        "a model": is_error or "model" not in marks,
        "an error": is_error,
        "counts": is_error or "usage" not in marks or not response["message"].get("content"),
    }
    return {name for name, is_there in is_held.items() if is_there}


def kinds_are_read(case: Case) -> Iterator[Problem]:
    """P1: what looks like calls, a second choice, reasoning, an image … is read as that, and not only kept."""
    response = case.baseline.response
    if response is None or case.capture.status >= 400:
        return
    names_read = _read(response)
    for name, leaf in _signs(case.events).items():
        if name not in names_read:
            message = f"it looks like {name}, and the plugin reads none: write a row, a hook or an exception"
            yield case.problem("P1", leaf, message, about=_FIELDS[name])
    yield from _ids_left(case, response["message"].get("tool_calls", ()))
    yield from _id_left(case)


def _ids_left(case: Case, calls: Iterable[dict[str, Any]]) -> Iterator[Problem]:
    """A call has a made-up id, and beside its name in the recording is another one."""
    ids = {case.baseline.response["id"], *(call["id"] for call in calls)}
    marks = case.baseline.provenance
    names = {call["name"] for number, call in enumerate(calls) if f"message.tool_calls[{number}].id" in marks}
    for leaf in case.leaves if names else ():
        holders = [at(case.events[leaf.event], leaf.path[:-depth]) for depth in (1, 2) if leaf.value in names]
        for key, value in [item for holder in holders if isinstance(holder, dict) for item in holder.items()]:
            is_id = _CALL_ID.fullmatch(key) and isinstance(value, str) and _ID.fullmatch(value)
            if is_id and value not in ids:
                message = f"its call has a made-up id, and the {key} beside its name is left"
                yield case.problem("P1", leaf, message, about="calls")


def _id_left(case: Case) -> Iterator[Problem]:
    """An answer has a made-up id, and a word with digits, another one in each answer, is left in the extensions."""
    if "id" not in case.baseline.provenance:
        return
    metadata = [normalized(case.mapper, one).get("response", {}).get("metadata", {}) for one in case.others]
    left = [dict(scalars(one["extensions"])) for one in metadata if "extensions" in one]
    for path in dict(scalars(case.baseline.extensions)):
        words = [str(one[path]) for one in left if path in one]
        if len({*words}) == len(words) > 2 and all(map(_ID.fullmatch, words)):
            yield case.problem("P1", show_path(path), "its id is made up, and this one is left", about="id")


# -------------------------------------------------------------------------------- evidence
# What no recording shows, and declarations that no recording bears out.


_Shows = Callable[[Capture, dict[str, Any], set[str]], Any]


def _holds(name: str) -> _Shows:
    return lambda _, response, names: name in names


_RECORDINGS: Final[dict[str, _Shows]] = {
    "a whole body": lambda capture, response, names: not capture.stream and capture.status < 400,
    "a stream": lambda capture, response, names: capture.stream,
    "calls": _holds("calls"),
    "a stream with calls": lambda capture, response, names: capture.stream and "calls" in names,
    "a second choice": _holds("a second choice"),
    "reasoning": _holds("reasoning"),
    "a refusal": _holds("a refusal"),
    "an image": _holds("an image"),
    "log probabilities": _holds("log probabilities"),
    "cached tokens": lambda _, response, names: response["usage"].get("cached_tokens"),
    "reasoning tokens": lambda _, response, names: response["usage"].get("reasoning_tokens"),
    "an answer cut at its limit": lambda _, response, names: response["finish_reason"] == "length",
    "an error in a stream": lambda one, _, names: one.stream and one.status < 400 and "an error" in names,
    "a cut stream": lambda capture, response, names: capture.stream and not capture.complete,
    "an HTTP error": lambda capture, response, names: capture.status >= 400,
}
"""What a server may send, by the words for a recording of it. The kit can change what was recorded, and invents little."""
_EMPTY_RESPONSE: Final[dict[str, Any]] = {"message": {}, "usage": {}, "metadata": {}, "finish_reason": None}


def unproven(mapper: Mapper, captures: Iterable[Capture], exceptions: Iterable[str] = ()) -> list[str]:
    """Return what no capture shows: kinds of answers, words of the plugin's ``finish_reasons``, and declarations.

    A kind is shown by what the capture holds, whether or not the plugin reads it. *exceptions* leave names out:
    ``not recorded: calls, an image``.
    """
    captures, shown, paths, texts = list(captures), [], set(), set[str]()
    for capture in captures:
        snapshot, events = normalized(mapper, capture), decoded(mapper, capture)[1]
        response = snapshot.get("response") or snapshot.get("partial") or _EMPTY_RESPONSE
        texts |= {*map(str, strings(events))}
        shown.append((capture, response, _read(response) | {*_signs(events)}))
        for leaf in leaves([response["metadata"].get("extensions", {}), *events]):
            paths |= {show_path(leaf.path[:depth], items=False) for depth in range(1, len(leaf.path) + 1)}
    dialect = getattr(mapper.map_delta, "__self__", None)
    finish_reasons = getattr(dialect, "finish_reasons", None)
    words = finish_reasons if isinstance(finish_reasons, Mapping) else _words_of(dialect, FinishReason)
    codes = [code for code in _words_of(dialect, ErrorKind) if code not in texts]
    known_words = {response.get("raw_finish_reason") for _, response, _ in shown}
    known_words |= OpenAIChatDialect.finish_reasons.keys()
    access = mapper.info.access
    own_paths = [path for name in ("pieces", "cumulative") for path in getattr(mapper.info, name)]
    silent_rows = dict.fromkeys(
        path
        for rows in rows_of(mapper)
        for path, row in rows.items()
        if re.sub(r"\[\d+\]", "[]", path) not in {*paths, *_USUAL_COUNTS}
        and not row.place.startswith("always ")
    )
    answers = [one.partition(": ")[2] for one in exceptions if one.startswith("not recorded: ")]
    answered = {name for one in answers for name in _TITLE.sub("", one).split(", ")}
    lists = {"the rows": silent_rows, "in a request:": unasked(mapper, captures)}
    left = {title: [name for name in names if name not in answered] for title, names in lists.items()}
    names = [
        *(name for name, shows in _RECORDINGS.items() if not any(shows(*one) for one in shown)),
        *(f"the finish word {word!r}" for word in words if word not in known_words),
        *(f"the error code {code!r}" for code in codes),
        *(f"{title} {', '.join(names)}" for title, names in left.items() if names),
        *([f"the key in {access.api_key_header}"] if access and access.api_key_variables else []),
        *(f"pieces at {path}" for path in own_paths if path not in {*OpenAIChatDialect.pieces, *paths}),
    ]
    return [name for name in names if name not in answered]


_TITLE: Final = re.compile("^(the rows|in a request:) ")


def _words_of(plugin: Any, kind: type[FinishReason | ErrorKind]) -> list[str]:
    """Return the keys of the tables of *kind* in the module of *plugin*. A value may be a tuple that begins with it."""
    tables = vars(sys.modules.get(type(plugin).__module__, sys)).values()
    rows = [row for table in tables if isinstance(table, dict) for row in table.items()]
    return [
        str(word) for word, value in rows if kind in map(type, value if type(value) is tuple else [value])
    ]


_USUAL_COUNTS: Final = {f"usage.{path}" for path in {**COUNTS, **DETAILS}.values() if "." in path}
"""The places in which OpenAI's dialect has counts that few servers send."""


def rows_of(mapper: Mapper) -> list[Mapping[str, FieldRow]]:
    """Return the rows that a plugin and its dialects state, by table."""
    owner = getattr(mapper.map_delta, "__self__", None)
    return [
        {path: row for path, row in rows.items() if not _is_own(one, row)}
        for one in (owner, *getattr(owner, "dialects", ()))
        for rows in stated_rows(one)
    ]


def _is_own(dialect: Any, row: FieldRow) -> bool:
    """Whether a subclass of OpenAI's dialect reads by a method that does not call the one that *row* describes."""
    name = "usage_info" if row.place.startswith("usage.") else row.place
    method, usual = (getattr(one, name, _is_own) for one in (type(dialect), OpenAIChatDialect))
    is_other = isinstance(dialect, OpenAIChatDialect) and method is not usual
    return is_other and "__class__" not in method.__code__.co_freevars


def declarations_hold(case: Case) -> Iterator[Problem]:
    """P4: no recording contradicts what ``provider_info`` declares. Said once, with the first capture."""
    if case.others and case.capture.case == case.others[0].case:
        for name, message in _contradicted(case):
            word = "not declared" if getattr(case.mapper.info, name) is False else "declared"
            yield attrs.evolve(case.problem("P4", name, f"{word}, and {message}"), path=name)


def _contradicted(case: Case) -> Iterator[tuple[str, str]]:
    mapper, info, dialect = case.mapper, case.mapper.info, getattr(case.mapper.map_delta, "__self__", None)
    streams = [one for one in case.others if one.stream and one.complete and one.status < 400]
    events = [event for one in streams for event in decoded(mapper, one)[1]]
    if info.access is not None and mapper.build_request is None:
        yield "access", "the plugin builds no requests, so nobody can ask"
    if not events:
        return
    snapshots = [normalized(mapper, one) for one in streams]
    ends = [
        one.body.rstrip().endswith(b"[DONE]")
        for one, snapshot in zip(streams, snapshots, strict=True)
        if info.sentinel or snapshot.get("response", {}).get("finish_reason") != "error"
    ]
    is_family = any(getattr(one, "sentinel", False) for one in getattr(dialect, "dialects", ()))
    if not any(ends) if info.sentinel else {*ends} == {True} and not is_family:
        yield "sentinel", f"{'no' if info.sentinel else 'every'} recorded stream ends with [DONE]"
    once = attrs.evolve(mapper, info=attrs.evolve(info, repeats_finish=False))
    if info.repeats_finish and snapshots == [normalized(once, one) for one in streams]:
        yield "repeats_finish", "no recorded stream goes on after its finish word"
    paths = [*info.text_paths, *info.logprob_paths]
    is_own = not isinstance(dialect, OpenAIChatDialect)
    if paths and is_own and all(at(event, path) is MISSING for event in events for path in paths):
        yield "text_paths", "no recorded event has any of them"
