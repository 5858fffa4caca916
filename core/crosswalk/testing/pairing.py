"""One capture as a snapshot, and a body against the stream of the same exchange (P2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import orjson

from crosswalk.codec import to_jsonable
from crosswalk.errors import CrosswalkError, MappingError
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture
from crosswalk.testing.case import reader_options
from crosswalk.testing.perturbation import (
    changed_paths,
    show_path,
)
from crosswalk.testing.problems import PAIR_CHECK, Problem, subject_of
from crosswalk.types.delta import ResponseDelta


def normalized(mapper: Mapper, capture: Capture) -> dict[str, Any]:
    """Return the snapshot of *capture*: the response, or the error and its partial response, and the deltas."""
    deltas: list[ResponseDelta] = []
    reader = Reader(mapper, reader_options(capture))
    try:
        deltas.extend(reader.read(capture.body))
        deltas.extend(reader.finish())
        return {"response": to_jsonable(reader.response()), "deltas": delta_lines(deltas)}
    except CrosswalkError as error:
        result: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
        if isinstance(error, MappingError) and error.partial is not None:
            result["partial"] = to_jsonable(error.partial)
        if deltas:
            result["deltas"] = delta_lines(deltas)
        return result


def check_pair(
    mapper: Mapper,
    whole: Capture,
    streamed: Capture,
    *,
    ignored: Sequence[str] = (),
) -> list[Problem]:
    """P2: the body and the stream of the same exchange give the same response.

    Ids, times, the hits of a server's cache, and the extensions are not compared. The structure of the extensions is
    specific to the provider and differs in a stream.

    Args:
        mapper: the provider.
        whole: the body.
        streamed: the stream.
        ignored: canonical paths, such as ``metadata.extensions.object``.
    """
    problem = partial(Problem, "P2", f"{whole.case} ~ {streamed.case}", check=PAIR_CHECK, case=whole.pair)
    left, right = normalized(mapper, whole), normalized(mapper, streamed)
    if "response" not in left or "response" not in right:
        both = left.get("error"), right.get("error")
        return [] if both[0] == both[1] else [problem(f"ends in {both[0]} and {both[1]}")]
    ends = left["response"]["finish_reason"], right["response"]["finish_reason"]
    if ends == ("error", "error"):
        return []  # a body cannot carry the output before the error
    before, after = _comparable(left["response"]), _comparable(right["response"])
    results = [show_path(path) for path in changed_paths(before, after)]
    different = [path for path in results if not path.startswith(tuple(ignored))]
    if not different:
        return []
    return [problem(f"body and stream disagree in {', '.join(different)}", subject=subject_of(different))]


def _comparable(response: dict[str, Any]) -> dict[str, Any]:
    """Return *response* without the parts that differ between two exchanges of the same content."""
    stored = _without(response, "id", "created")
    stored["usage"] = _without(response["usage"], "cached_tokens", "cache_write_tokens")
    stored["metadata"] = {"provider_id": response["metadata"]["provider_id"], "model_id": response["model"]}
    stored["metadata"]["provenance"] = response["metadata"].get("provenance", {})
    stored.update(_without_ids(response))
    stored["alternatives"] = [
        {**answer, **_without_ids(answer)} for answer in response.get("alternatives", ())
    ]
    return stored


def _without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def _without_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Return message and segments of *answer* without ids: a server makes new ones for each exchange.

    Arguments are compared as JSON: in a body a server may send them as an object, in a stream as the model wrote them.
    """
    calls = [
        {**_without(call, "id"), "arguments": _meaning(call["arguments"])}
        for call in answer["message"].get("tool_calls", ())
    ]
    segments = [
        {
            **segment,
            "content": _meaning(segment["content"]) if segment["type"] == "tool_call" else segment["content"],
            "metadata": _without(segment.get("metadata", {}), "id"),
        }
        for segment in answer.get("segments", ())
    ]
    return {"message": {**answer["message"], "tool_calls": calls}, "segments": segments}


def _meaning(arguments: str) -> str:
    """Return *arguments* without insignificant white space, or unchanged if they are not JSON."""
    try:
        return orjson.dumps(orjson.loads(arguments)).decode()
    except orjson.JSONDecodeError:
        return arguments


_CUT: Final = "¦"
"""Separates the texts of two deltas."""
_WIDTH: Final = 100
"""A line of at least this many characters takes no further delta."""
_LONGEST: Final = 60
"""The number of characters of a value that are shown. The response holds all of it."""
_TEXTS: Final = {
    "content_delta": "text",
    "reasoning_delta": "reasoning",
    "refusal_delta": "refusal",
    "arguments_delta": "arguments",
}
_WORD: Final = re.compile(r"[A-Za-z_][\w.:/-]*")


def delta_lines(deltas: Iterable[ResponseDelta]) -> list[str]:
    """Describe *deltas* in lines such as ``text choice=1 | object=chat.completion.chunk: Hel¦lo``.

    A line has the kind of the text, the typed fields, after ``|`` the extensions, and the text. Consecutive deltas that
    differ only in their text share a line, with ``¦`` between their texts. For log probabilities only the number is shown.
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
    """Describe the content of *delta* without the first of its texts, and return that text."""
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
    """Yield the scalars and empty containers in *value*, each with its path."""
    if value and isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _values(item, (*path, key))
    else:
        yield path, value


def _shown(value: Any) -> str:
    """Return *value* in short: a word unchanged, any other string in single quotes, the rest as JSON."""
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    if len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}({len(value)})"
    return value if _WORD.fullmatch(value) and value not in ("null", "true", "false") else repr(value)
