"""What the recordings show of a server, and declarations of a plugin that they do not bear out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import getmembers_static
from typing import Any, Final

import attrs

from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.plugin.registry import Mapper
from crosswalk.plugins import FieldTable
from crosswalk.testing.captures import Capture
from crosswalk.testing.case import Case, decoded
from crosswalk.testing.pairing import normalized
from crosswalk.testing.perturbation import MISSING, Problem, at, leaves, show_path

# -------------------------------------------------------------------------------- evidence
# What no recording shows, and declarations that no recording bears out.


_Shows = Callable[[Capture, dict[str, Any]], Any]


def _segment(kind: str) -> _Shows:
    return lambda _, response: any(one["type"] == kind for one in response.get("segments", ()))


def _has_calls(_: Capture, response: dict[str, Any]) -> Any:
    return response["message"].get("tool_calls")


_RECORDINGS: Final[dict[str, _Shows]] = {
    "a whole body": lambda capture, _: not capture.stream and capture.status < 400,
    "a stream": lambda capture, _: capture.stream,
    "calls": _has_calls,
    "a stream with calls": lambda capture, response: capture.stream and _has_calls(capture, response),
    "a second choice": lambda _, response: response.get("alternatives"),
    "reasoning": _segment("reasoning"),
    "a refusal": _segment("refusal"),
    "an image": _segment("media"),
    "log probabilities": lambda _, response: response.get("logprobs"),
    "cached tokens": lambda _, response: response["usage"].get("cached_tokens"),
    "reasoning tokens": lambda _, response: response["usage"].get("reasoning_tokens"),
    "an answer cut at its limit": lambda _, response: response.get("finish_reason") == "length",
    "an error in a stream": lambda capture, response: (
        capture.stream and capture.status < 400 and response.get("finish_reason") == "error"
    ),
    "a cut stream": lambda capture, _: capture.stream and not capture.complete,
    "an HTTP error": lambda capture, _: capture.status >= 400,
}
"""What a server may send, by the words for a recording of it. The kit can change what was recorded, and invents little."""
_EMPTY_RESPONSE: Final[dict[str, Any]] = {"message": {}, "usage": {}}


def unproven(mapper: Mapper, captures: Iterable[Capture]) -> list[str]:
    """Return what no capture shows: kinds of answers, finish words of an ``OpenAIChatDialect``, and declarations."""
    shown, paths = [], set()
    for capture in captures:
        snapshot = normalized(mapper, capture)
        response = snapshot.get("response") or snapshot.get("partial") or _EMPTY_RESPONSE
        shown.append((capture, response))
        for leaf in leaves(
            [response.get("metadata", {}).get("extensions", {}), *decoded(mapper, capture)[1]]
        ):
            paths |= {show_path(leaf.path[:depth], items=False) for depth in range(1, len(leaf.path) + 1)}
    dialect = getattr(mapper.map_delta, "__self__", None)
    words = dialect.finish_reasons if isinstance(dialect, OpenAIChatDialect) else ()
    known_words = {response.get("raw_finish_reason") for _, response in shown}
    known_words |= OpenAIChatDialect.finish_reasons.keys()
    own_paths = [path for name in ("pieces", "cumulative") for path in getattr(mapper.info, name)]
    rows = dict.fromkeys(
        path
        for table in tables_of(mapper)
        for path, row in table.rows.items()
        if path not in paths and not row.place.startswith("always ")
    )
    return [
        *(name for name, shows in _RECORDINGS.items() if not any(shows(*one) for one in shown)),
        *(f"the finish word {word!r}" for word in words if word not in known_words),
        *([f"the rows {', '.join(rows)}"] if rows else []),
        *(f"pieces at {path}" for path in own_paths if path not in {*OpenAIChatDialect.pieces, *paths}),
    ]


def tables_of(mapper: Mapper) -> list[FieldTable]:
    """Return the tables of fields of a plugin, and of its dialects."""
    owner = getattr(mapper.map_delta, "__self__", None)
    members = [
        member for one in (owner, *getattr(owner, "dialects", ())) for member in getmembers_static(one)
    ]
    return [value for _, value in members if isinstance(value, FieldTable)]


def declarations_hold(case: Case) -> Iterator[Problem]:
    """P4: no recording contradicts what ``provider_info`` declares. Said once, with the first capture."""
    if case.others and case.capture.case == case.others[0].case:
        for name, message in _contradicted(case):
            yield attrs.evolve(case.problem("P4", name, f"declared, and {message}"), path=name)


def _contradicted(case: Case) -> Iterator[tuple[str, str]]:
    mapper, info = case.mapper, case.mapper.info
    streams = [one for one in case.others if one.stream and one.complete and one.status < 400]
    events = [event for one in streams for event in decoded(mapper, one)[1]]
    objects = [event for event in events if isinstance(event, dict)]
    if info.access is not None and mapper.build_request is None:
        yield "access", "the plugin builds no requests, so nobody can ask"
    if not events:
        return
    if info.sentinel and not any(b"[DONE]" in one.body for one in streams):
        yield "sentinel", "no recorded stream ends with [DONE]"
    snapshots = [normalized(mapper, one) for one in streams]
    once = attrs.evolve(mapper, info=attrs.evolve(info, repeats_finish=False))
    if info.repeats_finish and snapshots == [normalized(once, one) for one in streams]:
        yield "repeats_finish", "no recorded stream goes on after its finish word"
    for name, types in _KEY_TYPES.items():
        key = getattr(info, name)
        if not all(isinstance(event[key], types) for event in objects if event.get(key) is not None):
            yield name, f"{key!r} has another kind of value in a recording"
    key, extensions = (
        info.timestamp_key,
        [one["response"]["metadata"].get("extensions", {}) for one in snapshots if "response" in one],
    )
    if any(event.get(key) for event in objects) and not any(key in one for one in extensions):
        yield "timestamp_key", f"{key!r} is in no extensions of a recording"
    paths = [*info.text_paths, *info.logprob_paths]
    is_own = not isinstance(getattr(mapper.map_delta, "__self__", None), OpenAIChatDialect)
    if paths and is_own and all(at(event, path) is MISSING for event in events for path in paths):
        yield "text_paths", "no recorded event has any of them"


_KEY_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "timestamp_key": (str, int, float),
    "number_key": int,
    "usage_key": dict,
}
