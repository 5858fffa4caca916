"""How an answer ended: the finish words of its choices, held to the end and settled by one precedence for all providers."""

from __future__ import annotations

import attrs

from crosswalk.errors import ErrorInfo, ErrorKind, UnknownFinishReasonError
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.finish import FinishReason
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import error_segment
from crosswalk.types.segment import Segment

__all__ = ["End", "Endings"]

# The precedence of design section 5: which of two ends of one choice counts.
_SEVERITY = (
    FinishReason.STOP,
    FinishReason.TOOL_CALLS,
    FinishReason.LENGTH,
    FinishReason.CONTENT_FILTER,
    FinishReason.CANCELLED,
    FinishReason.ERROR,
)


@attrs.frozen
class End:
    """How one choice ended.

    Attributes:
        reason: the canonical reason.
        raw: the provider's word, ``""`` where it ended without one; ``None`` where it did not say that it ended.
        unmapped: whether no mapping knows the word.
    """

    reason: FinishReason
    raw: str | None
    unmapped: bool = False


class Endings:
    """How the choices of one answer ended, as far as it has been read.

    Args:
        mapper: the provider, which knows its words.
        state: the stream's state, which knows the choices and their tool calls.
        keep_unknown: an unknown word is kept as a ``stop`` that is marked, not an error.

    Attributes:
        mapper: the provider.
        ends: the ends so far, by choice.
        error: the delta of the provider's error; ``None`` while there is none.
        unknown: the first unknown finish word, to be raised when everything has been received; ``None`` without one.
    """

    def __init__(self, mapper: Mapper, state: MappingState, *, keep_unknown: bool) -> None:
        self.mapper = mapper
        self._state = state
        self._keep_unknown = keep_unknown
        self.ends: dict[int, End] = {}
        self.error: ResponseDelta | None = None
        self.unknown: UnknownFinishReasonError | None = None

    @property
    def has_begun(self) -> bool:
        """Whether any choice has ended, or an error came."""
        return bool(self.ends) or self.error is not None

    def note(self, delta: ResponseDelta, place: str) -> None:
        """Ask the provider what the finish word of *delta*, read at *place*, means."""
        raw, unmapped = delta.raw_finish_reason, False
        reason = delta.finish_reason
        if reason is None:
            assert raw is not None, "a delta that ends says how"
            try:
                reason = self.mapper.map_finish_reason(raw, self._state)
                if reason is None:
                    raise UnknownFinishReasonError(raw)
                reason = FinishReason(reason)  # a plugin's word for it will do
            except UnknownFinishReasonError as error:
                reason, unmapped = FinishReason.STOP, True
                if not self._keep_unknown and self.unknown is None:
                    self.unknown = error.locate(provider=self.mapper.provider, event=place)
        before = self.ends.get(delta.choice)
        if raw is None and before is not None:
            raw = before.raw
        if before is None or _SEVERITY.index(reason) >= _SEVERITY.index(before.reason):
            self.ends[delta.choice] = End(reason, raw, unmapped)
        elif before.raw is None:
            self.ends[delta.choice] = End(before.reason, raw, before.unmapped)  # the first word there is

    def missing(self) -> str | None:
        """Why the answer is incomplete although the input has ended; ``None`` when it is whole."""
        if self.error is not None or not self.mapper.has_terminal:
            return None
        open_choices = sorted((self._state.choices | {0}) - set(self.ends))
        if not open_choices:
            return None
        which = "" if open_choices == [0] else f" of choice {open_choices[0]}"
        return f"the input ended without the provider's terminal signal{which}"

    def settle(self, choice: int) -> End:
        """The end of *choice* after the precedence (design, section 5); notes in the state what was worked out.

        An error ends every choice. Tool calls turn a ``stop`` into ``tool_calls``, and no calls the reverse; nothing else
        is overridden.
        """
        end = self.ends.get(choice)
        if self.error is not None:
            raw = end.raw if end is not None else self.error.raw_finish_reason
            return End(FinishReason.ERROR, raw)
        reason = FinishReason.STOP if end is None else end.reason
        if reason in (FinishReason.STOP, FinishReason.TOOL_CALLS):
            called = self._state.has_tool_calls(choice)
            reason = FinishReason.TOOL_CALLS if called else FinishReason.STOP
        raw = None if end is None else end.raw
        if end is not None and end.unmapped:
            self._state.note(self._path(choice), Provenance.UNMAPPED)
        elif end is None or reason is not end.reason or raw == "":
            self._state.note(self._path(choice), Provenance.DERIVED)
        return End(reason, raw)

    def _path(self, choice: int) -> str:
        if choice == 0:
            return "finish_reason"
        others = sorted(self._state.choices - {0})
        return f"alternatives[{others.index(choice)}].finish_reason"

    def segment(self, end: End) -> Segment | None:
        """The error segment of an answer that ended so; ``None`` when it is no error."""
        if self.error is not None:
            return self.error.segment
        if end.reason is not FinishReason.ERROR:
            return None
        said = f"with {end.raw[:60]!r}" if end.raw else "without a reason"
        return error_segment(ErrorInfo(ErrorKind.UNKNOWN, f"the provider ended the answer {said}"))
