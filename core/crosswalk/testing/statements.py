"""Statements: the facts that the author of a capture writes down, and the check that a plugin agrees with them.

A snapshot records the output of a plugin. A statement is written before the plugin, from the recorded bytes and the
provider's documents, so it also catches a mistake in the first version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from crosswalk.errors import ConfigurationError
from crosswalk.manifest import STATEMENT, manifest_of
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import ErrorKind, FinishReason, SegmentType

COUNTS: Final = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cache_write_tokens",
)
"""The counts that a statement about ``usage`` may name."""

_NOTES: Final = frozenset({"draft", "found", "note"})
"""Keys for the author. They are not checked."""


def statement_file(file: Path, case: str) -> Path:
    """Return the file of the statement about the capture *case* in *file*."""
    return file.with_name(f"{case}{STATEMENT}")


def read_statement(file: Path, case: str) -> dict[str, Any] | None:
    """Read the statement about the capture *case* in *file*.

    The statement is in ``CASE.says.json``, or under the key ``says`` of its line in the manifest.

    Returns:
        The statement without its notes, or ``None`` without a statement, and for a draft that the author has not
        corrected yet.

    Raises:
        ConfigurationError: the statement is not a JSON object, has an unknown key, or a value of a wrong type.
    """
    own = statement_file(file, case)
    source = str(own)
    if own.is_file():
        try:
            statement = orjson.loads(own.read_bytes())
        except orjson.JSONDecodeError as error:
            raise ConfigurationError(f"{source}: not JSON: {error}", source=source) from None
    else:
        entry = manifest_of(str(file.parent)).answers.get(str(file.resolve()), {})
        statement = entry.get("says")
        source = f"{file}: says"
    if statement is None:
        return None
    if isinstance(statement, dict) and "draft" in statement:
        return None
    _check(statement, source)
    return {name: value for name, value in statement.items() if name not in _NOTES}


def _check(statement: Any, source: str) -> None:
    """Raise a ConfigurationError if *statement* has an unknown key or a value of a wrong type."""
    if not isinstance(statement, dict):
        raise ConfigurationError(f"{source}: not a JSON object", source=source)
    for name, value in statement.items():
        fault = None
        if name not in _NOTES and name not in NAMES:
            fault = f"unknown; it may be {', '.join(NAMES)}"
        elif name in _FAULTS and (value is not None or name in ("finish", "complete")):
            fault = _FAULTS[name](value)
        if fault is not None:
            raise ConfigurationError(f'{source}: "{name}": {fault}', key=name, source=source)


def _not_text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string or null"


def _not_flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _not_time(value: Any) -> str | None:
    try:
        return None if datetime.fromisoformat(value).tzinfo else "must have a time zone, such as Z"
    except (TypeError, ValueError):
        return "must be a time in ISO 8601, such as 2026-01-01T09:45:00Z"


def _no_member_of(words: type[FinishReason | ErrorKind]) -> Callable[[Any], str | None]:
    return lambda value: None if value in tuple(words) else f"must be one of {', '.join(words)}"


def _not_usage(value: Any) -> str | None:
    if not isinstance(value, dict) or not value.keys() <= {*COUNTS}:
        return f"must be an object of {', '.join(COUNTS)}"
    is_right = all(count is None or (type(count) is int and count >= 0) for count in value.values())
    return None if is_right else "must hold counts, or null for a count that was not sent"


def _not_calls(value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list of calls"
    for call in value:
        if not isinstance(call, dict) or not call.keys() <= {"id", "name", "arguments"}:
            return "a call is an object of id, name, arguments"
    return None


_FAULTS: Final[dict[str, Callable[[Any], str | None]]] = {
    **dict.fromkeys(("text", "reasoning", "refusal", "raw_finish", "model", "id", "raises"), _not_text),
    **dict.fromkeys(("complete", "retryable"), _not_flag),
    "finish": _no_member_of(FinishReason),
    "error": _no_member_of(ErrorKind),
    "created": _not_time,
    "usage": _not_usage,
    "calls": _not_calls,
}
"""For each name, a function that returns the error in a value."""


# ------------------------------------------------------------------------------------- the answer


def stated_differences(
    statement: Mapping[str, Any], response: ChatResponse | None, error: str | None, message: str = ""
) -> list[tuple[str, str]]:
    """Return the facts of *statement* that disagree with a mapper's result for the capture, each with the difference.

    ``null`` in a statement means that there is no such value. A missing name means that nothing is stated. ``complete``
    follows from the other facts, so it is compared only if they agree.

    Args:
        statement: from :func:`read_statement`.
        response: the response, also a partial one, or ``None`` if there is none.
        error: the name of the error that was raised, or ``None`` without one.
        message: its message.
    """
    wanted = statement.get("raises")
    if statement and error != wanted:
        actual = "an answer" if error is None else f"{error}: {message}".removesuffix(": ")
        return [("raises", f"stated as {wanted or 'an answer'}, and read as {actual}")]
    facts = {name: value for name, value in statement.items() if name not in ("raises", "complete")}
    differences = [one for name, stated in facts.items() for one in _differences(name, stated, response)]
    if not differences and "complete" in statement:
        differences += _differences("complete", statement["complete"], response)
    return differences


def _differences(name: str, stated: Any, response: ChatResponse | None) -> Iterator[tuple[str, str]]:
    if response is None:
        yield name, f"stated as {_shown(stated)}, and there is no response"
    elif name == "usage":
        yield from _different_counts(stated, response)
    elif name == "calls":
        yield from _different_calls(stated, response)
    else:
        actual = _FACTS[name](response)
        if not _is_same(name, stated, actual):
            yield name, f"stated as {_shown(stated)}, and read as {_shown(actual)}"


def _shown(value: Any) -> str:
    text = value.isoformat() if isinstance(value, datetime) else orjson.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:80]}…"


def _is_same(name: str, stated: Any, actual: Any) -> bool:
    if name == "created" and stated is not None and actual is not None:
        return bool(datetime.fromisoformat(stated) == actual)
    if name in ("text", "reasoning", "refusal"):
        return bool((stated or "") == (actual or ""))
    return bool(stated == actual)


def _segments(response: ChatResponse, kind: SegmentType) -> str:
    return "".join(segment.content for segment in response.segments if segment.type is kind)


def _refusal(response: ChatResponse) -> str | None:
    """Return the text of a refusal. The message of an error is not one."""
    is_error = response.error_info is not None
    return (_segments(response, SegmentType.REFUSAL) or None) if is_error else response.refusal


def _unless(response: ChatResponse, path: str, value: Any) -> Any:
    """Return *value*, or ``None`` if the provenance of *path* marks it as not sent by the provider."""
    is_own = response.metadata.provenance.get(path) not in (Provenance.SYNTHETIC, Provenance.ABSENT)
    return value if is_own else None


def _error(response: ChatResponse) -> str | None:
    info = response.error_info
    return None if info is None else str(info.kind)


def _retryable(response: ChatResponse) -> bool | None:
    info = response.error_info
    return None if info is None else info.retryable


_FACTS: Final[dict[str, Callable[[ChatResponse], Any]]] = {
    "text": lambda response: response.message.content,
    "reasoning": lambda response: response.reasoning,
    "refusal": _refusal,
    "finish": lambda response: str(response.finish_reason),
    "raw_finish": lambda response: response.raw_finish_reason,
    "model": lambda response: _unless(response, "model", response.model),
    "id": lambda response: _unless(response, "id", response.id),
    "created": lambda response: _unless(response, "created", response.created),
    "error": _error,
    "retryable": _retryable,
    "complete": lambda response: response.is_complete,
}
"""For each name, the fact in a response. ``usage`` and ``calls`` are compared member by member."""

NAMES: Final = ("text", "reasoning", "refusal", "calls", "finish", "raw_finish", "usage", "model", "id",
                "created", "error", "retryable", "complete", "raises")  # fmt: skip
"""The names that a statement may have."""


def _different_counts(stated: Mapping[str, Any] | None, response: ChatResponse) -> Iterator[tuple[str, str]]:
    usage, provenance = response.usage, response.metadata.provenance
    for name in stated or COUNTS:
        wanted = None if stated is None else stated[name]
        mark = provenance.get("usage", provenance.get(f"usage.{name}"))
        actual = None if mark is Provenance.ABSENT else getattr(usage, name)
        if wanted != actual:
            yield f"usage.{name}", f"stated as {_shown(wanted)}, and read as {_shown(actual)}"


def _different_calls(
    stated: list[dict[str, Any]] | None, response: ChatResponse
) -> Iterator[tuple[str, str]]:
    calls = response.tool_calls
    if len(stated or ()) != len(calls):
        yield "calls", f"stated as {len(stated or ())} calls, and read as {len(calls)}"
        return
    for number, (wanted, call) in enumerate(zip(stated or (), calls, strict=True)):
        path = f"message.tool_calls[{number}]"
        actual = {
            "id": _unless(response, f"{path}.id", call.id),
            "name": call.name,
            "arguments": call.arguments,
        }
        if response.metadata.provenance.get(f"{path}.arguments") is Provenance.DERIVED and not wanted.get(
            "arguments"
        ):
            actual["arguments"] = wanted.get("arguments")  # "{}" represents arguments that were not sent
        for name, value in wanted.items():
            if not _same_argument(value, actual[name]):
                yield (
                    f"calls[{number}].{name}",
                    f"stated as {_shown(value)}, and read as {_shown(actual[name])}",
                )


def _same_argument(stated: Any, actual: Any) -> bool:
    """Whether both are the same text, or *actual* the JSON text of the object *stated*."""
    if isinstance(stated, dict) and isinstance(actual, str):
        try:
            return bool(orjson.loads(actual) == stated)
        except orjson.JSONDecodeError:
            return False
    return bool(stated == actual)
