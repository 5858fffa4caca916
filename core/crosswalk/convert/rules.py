"""The rules of losses: why a conversion does not carry a field unchanged, and how much that matters.

Each loss of a report follows one rule of :data:`RULES`. The published matrix lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import attrs

from crosswalk.codec.layout import step
from crosswalk.mapping.reader import ENVELOPE as ENVELOPE
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.values import FinishReason, SegmentType


class LossReason(StrEnum):
    """The effect of a conversion on a field that was not carried unchanged."""

    DROPPED = "dropped"
    """The form has no field for it."""
    CHANGED = "changed"
    """The form has a field, but not for this value. The field has the nearest one."""
    RESPELLED = "respelled"
    """The same JSON value in another spelling: spaces, escapes, the order of keys, ``1e2`` for ``100.0``."""
    JOINED = "joined"
    """Its text is merged with that of another part of the same type."""
    REORDERED = "reordered"
    """It is complete, in another order."""
    FILLED_IN = "filled_in"
    """The source lacks it and the form requires it. The field has a made-up value."""


class Grade(StrEnum):
    """How much a loss matters."""

    HARMLESS = "harmless"
    """The meaning is complete. A report does not list it."""
    CHANGED = "changed"
    """The meaning is reduced or changed. A report lists it."""
    DANGEROUS = "dangerous"
    """Acting on the converted answer may do the wrong thing. It is an error unless the caller allows it."""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen
class LossRule:
    """A rule of losses.

    Attributes:
        name: its name.
        grade: how much such a loss matters.
        why: the reason, in a sentence.
        path: the fields that it is about, as a regular expression for their whole path.
        reasons: what became of them, or empty for anything.
        holds: whether it holds for a field of the answer *before* and *after* the conversion, or ``None`` for always.
    """

    name: str
    grade: Grade
    why: str
    path: re.Pattern[str] = attrs.field(converter=_pattern)
    reasons: tuple[LossReason, ...] = ()
    holds: Callable[[str, ChatResponse, ChatResponse], bool] | None = None


def _answer(path: str, response: ChatResponse) -> ChatResponse | Alternative:
    """Return the answer of *response* that *path* is about."""
    match = re.match(r"alternatives\[(\d+)\]\.", path)
    return response.alternatives[int(match[1])] if match else response


def _counterpart(path: str, before: ChatResponse, after: ChatResponse) -> ChatResponse | Alternative:
    """Return the counterpart in *after* of the answer of *before* that *path* is about."""
    answer = _answer(path, before)
    if answer is before or not isinstance(answer, Alternative):
        return after
    return next(other for other in after.alternatives if other.index == answer.index)


def says_something(value: Any) -> bool:
    """Whether *value* of the provider's further fields tells a client something."""
    if isinstance(value, dict):
        return any(key not in ENVELOPE and says_something(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(map(says_something, value))
    return value is False or value not in (None, "", 0)


def _is_envelope(path: str, before: ChatResponse, _: ChatResponse) -> bool:
    value: Any = before.metadata.extensions.thawed()
    at = "metadata.extensions"
    while at != path:
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        key, value = next((k, v) for k, v in inner if re.match(re.escape(at + step(k)) + r"([.[]|$)", path))
        if key in ENVELOPE:
            return True
        at += step(key)
    return not says_something(value)


def _is_zero(path: str, before: ChatResponse, _: ChatResponse) -> bool:
    value: Any = before
    for name in path.split("."):
        value = getattr(value, name)
    return not value


def _is_cut(path: str, before: ChatResponse, after: ChatResponse) -> bool:
    old = _answer(path, before).finish_reason
    new = _counterpart(path, before, after).finish_reason
    return old not in _WHOLE and new in _WHOLE


_WHOLE: Final = (FinishReason.STOP, FinishReason.TOOL_CALLS)


def _is_error(_: str, before: ChatResponse, after: ChatResponse) -> bool:
    return before.finish_reason is FinishReason.ERROR is after.finish_reason


def _call(path: str, answer: ChatResponse | Alternative) -> ToolCall:
    """Return the call of *answer* that *path* is about."""
    calls = answer.message.tool_calls or ()
    return calls[int(path.rpartition("[")[2].partition("]")[0])]


def _had_none(path: str, before: ChatResponse, _: ChatResponse) -> bool:
    return not _call(path, _answer(path, before)).arguments.strip()


def _is_emptied(path: str, before: ChatResponse, after: ChatResponse) -> bool:
    return _call(path, _counterpart(path, before, after)).arguments in ("", "{}")


def _is_with_refusal(path: str, before: ChatResponse, after: ChatResponse) -> bool:
    old, new = _answer(path, before), _counterpart(path, before, after)
    return new.message.text == old.message.text + (old.refusal or "")


def _is_spaced(path: str, before: ChatResponse, after: ChatResponse) -> bool:
    old, new = _answer(path, before).message.text, _counterpart(path, before, after).message.text
    return bool(old.strip()) and old.strip() == new.strip()


def _is(*kinds: SegmentType) -> Callable[[str, ChatResponse, ChatResponse], bool]:
    def holds(path: str, before: ChatResponse, _: ChatResponse) -> bool:
        number = int(path.rpartition("segments[")[2].partition("]")[0])
        return _answer(path, before).segments[number].type in kinds

    return holds


_H, _C, _D = Grade.HARMLESS, Grade.CHANGED, Grade.DANGEROUS
_OF = r"(alternatives\[\d+\]\.)?"
_TEXT = _OF + r"message\.content"
_CALL = _OF + r"message\.tool_calls\[\d+\]"
_PART = _OF + r"segments\[\d+\].*"

RULES: Final = (
    LossRule("respelled", _H, "the same JSON value in other characters", ".*", (LossReason.RESPELLED,)),
    LossRule("joined", _H, "the text is there, in one piece with its neighbour", ".*", (LossReason.JOINED,)),
    LossRule("filled-in", _H, "the format requires the field and the source does not have it", ".*",
        (LossReason.FILLED_IN,)),
    LossRule("measured", _H, "Crosswalk measured it; no server sent it",
        r"attempts|metadata\.(request_duration|time_to_first_token)"),
    LossRule("reader", _H, "it names who read the answer, not what it says", r"metadata\.(provider_id|model_id)"),
    LossRule("provenance", _H, "a note of Crosswalk about a value", r"metadata\.provenance.*"),
    LossRule("time", _H, "the format has whole seconds, or no time of creation", "created"),
    LossRule("finish-word", _H, "the format has its own word for the same finish reason", _OF + "raw_finish_reason"),
    LossRule("zero-count", _H, "the format has no place for a count of zero", r"usage\..*", holds=_is_zero),
    LossRule("envelope", _H, "a field about the document, such as `object`, or one without a value",
        r"metadata\.extensions.*", holds=_is_envelope),
    LossRule("error-alone", _C, "the answer is an error, and the format has no content besides it",
        r"message\.(content|tool_calls.*)", holds=_is_error),
    LossRule("no-arguments", _H, "a call without arguments has an empty object", _CALL + r"\.arguments", holds=_had_none),
    LossRule("call-arguments", _D, "a call has lost its arguments", _CALL + r"\.arguments", holds=_is_emptied),
    LossRule("call-order", _C, "calls stand in the order in which they became known", _OF + r"message\.tool_calls",
        (LossReason.REORDERED,)),
    LossRule("call", _D, "the format has no tool calls, or not these", _OF + r"message\.tool_calls(\[\d+\](\.name)?)?"),
    LossRule("cut-as-whole", _D, "an answer that is not whole would look whole", _OF + "finish_reason", holds=_is_cut),
    LossRule("refusal-as-text", _C, "the format has no refusals; the words stand in the text", _TEXT,
        holds=_is_with_refusal),
    LossRule("white-space", _C, "the provider's final text has other white space at its ends than the streamed one",
        _TEXT, holds=_is_spaced),
    LossRule("text", _D, "the text of the answer is not all there", _TEXT),
    LossRule("call-text", _C,
        "arguments that are not a JSON object stand as text under `INVALID_JSON`, or a number or a repeated key is lost",
        _CALL + r"\.arguments"),
    LossRule("call-identity", _C, "the call has another id, or is written as a function", _CALL + r"\.(id|kind)"),
    LossRule("finish", _C, "the format has no such finish reason; the nearest one stands there", _OF + "finish_reason"),
    LossRule("refusal", _C, "the format has no refusals", _OF + "refusal"),
    LossRule("alternative", _C, "the format has one answer, or another order", r"alternatives(\[\d+\])?"),
    LossRule("name", _C, "the format has no name of the author", _OF + r"message\.name"),
    LossRule("identity", _C, "the format has no id, or no model", "id|model"),
    LossRule("count", _C, "the format does not count this", r"usage(\..*)?"),
    LossRule("filter-verdict", _C, "the format has no verdicts of content filters", "content_filter_results"),
    LossRule("logprobs", _C, "the format has no log probabilities, or not of all tokens", _OF + "logprobs.*"),
    LossRule("order", _C, "the format has another order of parts, or other parts", _OF + "segments"),
    LossRule("reasoning", _C, "the format has no reasoning, or not its signature, id or encrypted form",
        _PART, holds=_is(SegmentType.REASONING)),
    LossRule("server-tool", _C,
        "calls of a server's tools and their results stay in their own format, and so do further fields of a call",
        _PART, holds=_is(SegmentType.TOOL_CALL)),
    LossRule("citation", _C, "the format cites web pages only, or not at all", _PART, holds=_is(SegmentType.CITATION)),
    LossRule("media", _C, "the format has no such image, sound or file", _PART, holds=_is(SegmentType.MEDIA)),
    LossRule("safety", _C, "the format has no safety ratings", _PART, holds=_is(SegmentType.SAFETY)),
    LossRule("error-detail", _C, "the format has its own words for an error", _PART, holds=_is(SegmentType.ERROR)),
    LossRule("text-detail", _C, "the format has no such field of a text, or not this cut between texts",
        _PART, holds=_is(SegmentType.TEXT, SegmentType.REFUSAL)),
    LossRule("further-field", _C, "a field of the provider's own that the format does not have", r"metadata\.extensions.*"),
)  # fmt: skip
"""The rules. The first that holds is that of a loss."""

UNNAMED: Final = LossRule("unnamed", _C, "a loss that no rule names; please report it", ".*")
"""The rule of a loss without another rule."""


def rule_of(path: str, reason: LossReason, before: ChatResponse, after: ChatResponse) -> LossRule:
    """Return the rule for the field *path* of *before* that is not in *after* unchanged."""
    for rule in RULES:
        is_about = (not rule.reasons or reason in rule.reasons) and rule.path.fullmatch(path)
        if is_about and (rule.holds is None or rule.holds(path, before, after)):
            return rule
    return UNNAMED
