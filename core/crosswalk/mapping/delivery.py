"""The deltas of an answer as consumers get them: numbered, each fact once, and the end held back to the last one.

Servers repeat finish words, correct their counts, and send fields after the finish word. A consumer gets one final delta for
each choice, after everything else.
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugin.state import End, MappingState
from crosswalk.types.delta import (
    UNNUMBERED,
    ResponseDelta,
    last_delta,
    number_delta,
    with_changes,
)
from crosswalk.types.json import EMPTY_OBJECT, PIECES, Arrays, FrozenObject, adopted, merge, thaw
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason, Segment, SegmentType

_TEXT = SegmentType.TEXT


class Delivery:
    """Adds deltas to the state of an answer and hands out those that may be shown before its end.

    Args:
        state: the state of the answer.
    """

    def __init__(self, state: MappingState) -> None:
        self._state = state
        self._delivered_usage: UsageInfo | None = None
        self._late_extensions: dict[
            str, Any
        ] = {}  # extensions that arrived after the end, for the final delta

    def deliver(
        self, deltas: list[ResponseDelta], usage: UsageInfo | None, changes: dict[str, Any]
    ) -> list[ResponseDelta]:
        """Deliver the deltas of one event, numbered and without their end.

        Args:
            deltas: the deltas that the plugin made of the event.
            usage: the event's token counts, or ``None`` without any.
            changes: the event's changes to the extensions, which contain them already.
        """
        state = self._state
        is_undelivered = usage is not None and state.usage is not self._delivered_usage
        if len(deltas) == 1 and not is_undelivered and _is_bare(delta := deltas[0]):  # most events
            if usage is not None:
                state.report(usage)
                self._delivered_usage = state.usage
                extensions = adopted(changes) if changes else EMPTY_OBJECT
                delta = with_changes(delta, UNNUMBERED, extensions, state.usage)
                deltas = [delta]
            elif changes:
                delta = with_changes(delta, UNNUMBERED, adopted(changes), None)
                deltas = [delta]
            number_delta(delta, state.delta_count)
            state.delta_count += 1
            (state.choices.get(delta.choice) or state.choice(delta.choice)).add(delta)
            return deltas
        delivered: list[ResponseDelta] = []
        if usage is not None:
            if is_undelivered and state.usage not in (None, self._delivered_usage, usage):
                # Counts that are about to be replaced before anyone received them get a delta of their own.
                self._delivered_usage = state.usage
                self._add(ResponseDelta(usage=state.usage), delivered)
            state.report(usage)
        remaining = [part for delta in deltas if (part := self._without_end(delta)) is not None]
        if not remaining:
            if changes:
                self._deliver_changes(changes, delivered)
            return delivered
        last = len(remaining) - 1
        for number, delta in enumerate(remaining):
            extensions, counts = delta.extensions, delta.usage
            if extensions is not EMPTY_OBJECT:
                state.extend(extensions._data, PIECES)
            if changes:
                extensions, changes = _joined(extensions, changes), {}
            if counts is not None:
                state.report(counts)
                self._delivered_usage = state.usage
            elif number == last and usage is not None:
                counts = self._delivered_usage = state.usage
            if extensions is not EMPTY_OBJECT or counts is not None or not _is_bare(delta):
                delta = with_changes(delta, UNNUMBERED, extensions, counts)
            self._add(delta, delivered)
        return delivered

    def final(self, choice: int, end: End, segment: Segment | None = None) -> ResponseDelta:
        """Deliver the last delta of *choice*. The one of the first choice carries usage and late extensions."""
        state = self._state
        late: dict[str, Any] = {}
        if choice == 0:
            late = self._late_extensions
            if state.error is not None and state.error.extensions:
                late = {**state.error.extensions.thawed(), **late}
        delta = last_delta(
            state.delta_count,
            choice,
            end.reason,
            end.raw,
            state.usage if choice == 0 else None,
            segment,
            adopted(late) if late else EMPTY_OBJECT,
        )
        state.delta_count += 1
        state.choice(choice).add(delta)
        return delta

    def _deliver_changes(self, changes: dict[str, Any], delivered: list[ResponseDelta]) -> None:
        """Deliver extensions without a delta. Those that arrive after the end wait for the final delta."""
        if not self._state.has_begun_to_end:
            self._add(ResponseDelta(extensions=adopted(changes)), delivered)
            return
        if _overwrites(changes, self._late_extensions):
            self._add(ResponseDelta(extensions=adopted(self._late_extensions)), delivered)
            self._late_extensions = {}
        merge(self._late_extensions, changes, Arrays(), PIECES)

    def _add(self, delta: ResponseDelta, delivered: list[ResponseDelta]) -> None:
        state = self._state
        number_delta(delta, state.delta_count)
        state.delta_count += 1
        state.choice(delta.choice).add(delta)
        delivered.append(delta)

    def _without_end(self, delta: ResponseDelta) -> ResponseDelta | None:
        """Return *delta* if it has more than the end of its choice. An error waits, and delivers the previous one."""
        if delta.raw_finish_reason is None and delta.finish_reason is None:
            return delta
        state = self._state
        if delta.segment is not None and delta.finish_reason is FinishReason.ERROR:
            earlier, state.error = state.error, delta
            for name, value in delta.extensions.items():
                state.extensions.setdefault(name, thaw(value))
            return earlier
        if delta.usage is not None:
            state.report(delta.usage)
        state.choice(delta.choice)
        return None if has_only_its_end(delta) else delta


def has_output(delta: ResponseDelta) -> bool:
    """Whether *delta* carries visible content: text, reasoning or a tool call."""
    return (
        delta.content_delta is not None
        or delta.reasoning_delta is not None
        or delta.tool_call_delta is not None
    )


def texts_of(delta: ResponseDelta) -> list[str]:
    """The texts of *delta*: text, reasoning, refusal, arguments, or the content of a segment."""
    call, segment = delta.tool_call_delta, delta.segment
    texts = (
        delta.content_delta,
        delta.reasoning_delta,
        delta.refusal_delta,
        call and call.arguments_delta,
        segment and segment.content,
    )
    return [text for text in texts if text]


def _is_bare(delta: ResponseDelta) -> bool:
    """Return whether *delta* may be delivered unchanged, once it is numbered."""
    return (
        delta.index == UNNUMBERED
        and delta.raw_finish_reason is None
        and delta.finish_reason is None
        and delta.usage is None
        and delta.extensions is EMPTY_OBJECT
    )


def has_only_its_end(delta: ResponseDelta) -> bool:
    """Return whether *delta*, apart from counts, only has the end of its choice."""
    return not (
        has_output(delta)
        or delta.refusal_delta is not None
        or delta.segment is not None
        or delta.correction is not None
        or delta.logprobs
        or (delta.extensions is not EMPTY_OBJECT and delta.extensions)
    )


def _joined(own: FrozenObject, changes: dict[str, Any]) -> FrozenObject:
    if not own:
        return adopted(changes)
    both = own.thawed()
    merge(both, changes, Arrays(), PIECES)
    return adopted(both)


def _overwrites(changes: dict[str, Any], extensions: dict[str, Any]) -> bool:
    """Whether merging *changes* into *extensions* would replace a value."""
    return any(
        name in extensions
        and not (
            isinstance(value, dict)
            and isinstance(extensions[name], dict)
            and not _overwrites(value, extensions[name])
        )
        for name, value in changes.items()
    )
