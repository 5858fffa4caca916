"""The end of an answer: the finish words of its choices, resolved at the end by one precedence for all providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from crosswalk.errors import ErrorInfo, ErrorKind, UnknownFinishReasonError
from crosswalk.mapping.delivery import Delivery
from crosswalk.mapping.failures import classify, refined
from crosswalk.plugin.registry import Mapper
from crosswalk.plugin.state import End, MappingState, take_string
from crosswalk.types.delta import ResponseDelta, ended
from crosswalk.types.usage import Provenance
from crosswalk.types.values import FinishReason, Segment, error_segment

_STOP: Final = FinishReason.STOP  # an enum's members are slow to look up
_TOOL_CALLS: Final = FinishReason.TOOL_CALLS
# Of two ends of one choice, the later in this list counts: the one further from a whole answer.
_SEVERITY = (
    FinishReason.STOP,
    FinishReason.TOOL_CALLS,
    FinishReason.LENGTH,
    FinishReason.CONTENT_FILTER,
    FinishReason.CANCELLED,
    FinishReason.ERROR,
)


def take_end(
    part: dict[str, Any], key: str, state: MappingState, *, default: str | None = None
) -> Iterable[ResponseDelta]:
    """Return the delta of the finish word under *key* of *part*. The first word counts, and a different one stays.

    Args:
        part: the object with the word.
        key: the key of the word.
        state: the state of this answer.
        default: the word if it has none, or ``None`` if the answer has not ended then.

    Raises:
        WireTypeError: it is not a string.
    """
    word, end = take_string(part, key), state.ends.get(0)
    if word is None:
        word = default
    if word is None:
        return ()
    if end is None or end.raw is None:
        return (ended(word),)
    if word not in (end.raw, default):
        part[key] = word
    return ()


def note_end(state: MappingState, mapper: Mapper, delta: ResponseDelta) -> str | None:
    """Note the end in *delta*, which ends its choice. Return the finish word if no mapping knows it.

    Raises:
        PluginError: ``map_finish_reason`` returned something other than a finish reason.
    """
    raw, reason, unknown = delta.raw_finish_reason, delta.finish_reason, None
    if reason is None:
        assert raw is not None, "a delta that ends says how"
        reason, unknown = _meaning(state, mapper, raw)
    before = state.ends.get(delta.choice)
    if raw is None and before is not None:
        raw = before.raw
    if before is None or _SEVERITY.index(reason) >= _SEVERITY.index(before.reason):
        state.ends[delta.choice] = End(reason, raw, unmapped=unknown is not None)
    elif before.raw is None:
        state.ends[delta.choice] = End(
            before.reason, raw, unmapped=before.unmapped
        )  # the first word there is
    return unknown


def _meaning(state: MappingState, mapper: Mapper, raw: str) -> tuple[FinishReason, str | None]:
    """Return the meaning of the provider's word, and the word itself if it is unknown."""
    try:
        reason = mapper.map_finish_reason(raw, state)
        if reason is None:
            raise UnknownFinishReasonError(raw)
    except UnknownFinishReasonError as error:
        try:
            return FinishReason(raw), None  # canonical words keep their meaning
        except ValueError:
            if state.unknown_finish is None:
                state.unknown_finish = error
            return FinishReason.STOP, raw
    if type(reason) is FinishReason:
        return reason, None
    try:
        return FinishReason(reason), None  # a plugin's word for it will do
    except ValueError:
        raise mapper.broken(f"map_finish_reason gave {type(reason).__name__}, not a FinishReason") from None


def missing(state: MappingState, mapper: Mapper) -> str | None:
    """Return why the answer is incomplete although the input has ended, or ``None`` if it is complete."""
    if state.error is not None or not mapper.has_terminal:
        return None
    if (
        0 in state.ends
        and len(state.choices) <= len(state.ends)
        and state.choices.keys() <= state.ends.keys()
    ):
        return None
    open_choices = sorted((state.choices.keys() | {0}) - state.ends.keys())
    which = "" if open_choices == [0] else f" of choice {open_choices[0]}"
    return f"the input ended without the provider's terminal signal{which}"


def final_deltas(state: MappingState, delivery: Delivery) -> Iterator[ResponseDelta]:
    """Deliver the last delta of each choice. The one of the first choice comes last and completes the answer."""
    for position, choice in enumerate(state.others if len(state.choices) > 1 else ()):
        yield delivery.final(choice, _settle(state, choice, f"alternatives[{position}].finish_reason"))
    end = _settle(state, 0, "finish_reason")
    yield delivery.final(0, end, _segment(state, end))


def _settle(state: MappingState, choice: int, path: str) -> End:
    """Return the end of *choice* after the precedence, and note derived values.

    An error ends every choice. Tool calls make ``tool_calls`` of a ``stop``; nothing else is overridden. A word for tool
    calls without a call stays, marked as derived.
    """
    end = state.ends.get(choice)
    if state.error is not None:
        raw = end.raw if end is not None else state.error.raw_finish_reason
        return End(FinishReason.ERROR, raw)
    reason = _STOP if end is None else end.reason
    is_without_call = False
    if reason is _STOP or reason is _TOOL_CALLS:
        has_calls = state.choice(choice).has_calls  # given ones, not those that a plugin asked the state for
        is_without_call = reason is _TOOL_CALLS and not has_calls
        if has_calls:
            reason = _TOOL_CALLS
        if end is not None and end.reason is reason and end.raw and not end.unmapped and not is_without_call:
            return end
    raw = None if end is None else end.raw
    if end is not None and end.unmapped:
        state.note(path, Provenance.UNMAPPED)
    elif end is None or reason is not end.reason or is_without_call or raw == "":
        state.note(path, Provenance.DERIVED)
    return End(reason, raw)


def _segment(state: MappingState, end: End) -> Segment | None:
    """Return the error segment of an answer that ended with an error, or ``None``."""
    if state.error is not None:
        return state.error.segment
    if end.reason is not FinishReason.ERROR:
        return None
    raw = f"with {end.raw[:60]!r}" if end.raw else "without a reason"
    info = ErrorInfo(ErrorKind.UNKNOWN, f"the provider ended the answer {raw}", code=end.raw or None)
    return error_segment(refined(info, classify(None, "", [end.raw or ""])))
