"""Answers without content whose message holds text that no mapping has read, such as a renamed field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from crosswalk.plugin.state import MappingState
from crosswalk.types.answer import Choice
from crosswalk.types.response import counted_tokens
from crosswalk.types.values import Segment, SegmentType

ENVELOPE: Final = frozenset(
    {
        "created", "created_at", "completed_at", "done", "done_reason", "eval_duration", "id", "index", "load_duration",
        "object", "prompt_eval_duration", "raw_finish_reason", "role", "service_tier", "status", "system_fingerprint",
        "timings", "total_duration", "type",
    }
)  # fmt: skip
"""Fields about the answer as a document, and durations. Each format has its own, so no client misses another's."""

_LABELS: Final = ENVELOPE | {"name", "model"}
_BESIDE: Final = (SegmentType.SAFETY, SegmentType.CITATION)
"""Parts about the content of an answer, which a server may also send without it."""


def is_unread(state: MappingState, paths: tuple[str, ...] | None) -> bool:
    """Whether the first choice has no content, although tokens beyond its reasoning were counted and its message holds text.

    Args:
        state: the state at the end of the answer.
        paths: see ``ProviderInfo.message_paths``.
    """
    usage, kinds = state.usage, set(_kinds(state.choice(0)))
    if usage is None or not kinds <= {SegmentType.REASONING}:
        return False
    reasoning = usage.reasoning_tokens or 0
    if (counted_tokens(usage, state.provenance) or 0) <= reasoning or (kinds and not reasoning):
        return False  # if reasoning was shown and not counted, all tokens may be reasoning
    roots = (state.extensions,) if paths is None else _at(state.extensions, paths)
    return any(map(_holds_text, roots))


def _kinds(choice: Choice) -> Iterator[SegmentType]:
    for part in choice.parts:
        if isinstance(part, tuple):
            if any(part[1]):
                yield part[0]
        elif not isinstance(part, Segment):
            yield SegmentType.TOOL_CALL
        elif part.type not in _BESIDE and (part.content or part.type is not SegmentType.TEXT):
            yield part.type


def _at(extensions: Any, paths: Iterable[str]) -> Iterator[Any]:
    """Return the values at *paths* of *extensions*."""
    for path in paths:
        values = [extensions]
        for step in path.split("."):
            key = step.removesuffix("[]")
            values = [value[key] for value in values if isinstance(value, dict) and key in value]
            if key != step:
                values = [item for value in values if isinstance(value, list) for item in value]
        yield from values


def _holds_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_text(item) for key, item in value.items() if not _is_label(key))
    if isinstance(value, list):
        return any(map(_holds_text, value))
    return isinstance(value, str) and bool(value.strip())


def _is_label(key: str) -> bool:
    """Whether *key* is that of an id, a role, a name, or another field about the answer as a document."""
    return key in _LABELS or key.endswith(("_id", "Id", "ID"))
