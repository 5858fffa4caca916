"""Deltas add up to a response.

This module belongs to the types, not to the stream package that re-exports it, because ``ChatResponse.from_deltas``
needs it. It depends on deltas only, on no provider and no wire format.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import counted
from crosswalk.types.answer import Answer
from crosswalk.types.choice import Built, Choice
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.error_info import ErrorInfo
from crosswalk.types.finish import FinishReason
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse, new_id, now
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import UsageInfo


class PartialResponse:
    """The answer so far: a live view that copies nothing until you read a property."""

    def __init__(self, accumulator: DeltaAccumulator) -> None:
        self._accumulator = accumulator

    @property
    def text(self) -> str:
        """The text so far."""
        return self._accumulator._joined(SegmentType.TEXT)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return self._accumulator._joined(SegmentType.REASONING)

    @property
    def message(self) -> ChatMessage:
        """The message so far, without tool calls that have no name yet."""
        return self._accumulator._build_primary().message

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls so far, their arguments perhaps cut."""
        return self.message.tool_calls or ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The parts so far."""
        return self._accumulator._build_primary().segments

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended, or ``None`` while it has not."""
        return self._accumulator.finish_reason

    @property
    def usage(self) -> UsageInfo | None:
        """The last usage report, or ``None`` while there is none."""
        return self._accumulator.usage

    @property
    def delta_count(self) -> int:
        """The number of deltas in it."""
        return self._accumulator.delta_count

    def __repr__(self) -> str:
        return f"PartialResponse({counted(self.delta_count, 'delta')}, finish_reason={self.finish_reason})"


class DeltaAccumulator:
    """Adds up deltas to a response.

    Deltas may come from several threads and out of order. They are put in order by ``index``. Text is stored
    in lists and joined once. A later usage report replaces an earlier one.

    Args:
        id: the response's id, or ``None`` to make one.
        model: the model, or ``None`` if unknown.
        provider_id: the provider.
        created: the time of creation, or ``None`` to ask *clock*.
        id_factory: makes the id.
        clock: returns the time, with a time zone.

    Attributes:
        answer: the answer so far. You may add facts to it that no delta carries: how long it took, the provider's bytes,
            or why a value is not the provider's own.
    """

    def __init__(
        self,
        *,
        id: str | None = None,
        model: str | None = None,
        provider_id: str = "unknown",
        created: datetime | None = None,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.answer = answer = Answer(provider_id)
        answer.id, answer.model, answer.created = id, model, created
        answer.id_factory, answer.clock = id_factory, clock
        self._primary: Choice = answer.choice(0)
        self._lock = threading.Lock()
        self._early: dict[int, ResponseDelta] = {}

    @property
    def delta_count(self) -> int:
        """The number of deltas that came, including those that wait for an earlier one."""
        return self.answer.delta_count + len(self._early)

    @property
    def total_tokens(self) -> int:
        """Tokens by the last usage report, or 0 while there is none."""
        usage = self.answer.usage
        return usage.total_tokens if usage is not None else 0

    @property
    def usage(self) -> UsageInfo | None:
        """The last usage report, or ``None`` while there is none."""
        return self.answer.usage

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended, or ``None`` while the final delta is missing."""
        return self._primary.finish

    @property
    def is_complete(self) -> bool:
        """Whether the final delta and every delta before it came."""
        return self._primary.finish is not None and not self._early

    @property
    def current(self) -> PartialResponse:
        """The answer so far, as a live view."""
        return PartialResponse(self)

    def append(self, delta: ResponseDelta) -> None:
        """Add *delta*. Safe from several threads at once.

        Raises:
            ResponseValidationError: its index came before, or lies after the final delta's, or it has none yet
                (``ACODE-RSP-010``). So may one that came too early and waited. A refused delta is not stored.
        """
        with self._lock:
            if delta.index != self.answer.delta_count:
                self._keep_early(delta)
                return
            self._add(delta)
            while self._early and self.answer.delta_count in self._early:
                self._add(self._early.pop(self.answer.delta_count))

    def _keep_early(self, delta: ResponseDelta) -> None:
        if delta.index < 0:
            raise _out_of_order(delta.index, "says that nobody has numbered it")
        if delta.index < self.answer.delta_count or delta.index in self._early:
            raise _out_of_order(delta.index, "came before")
        if self._primary.finish is not None:
            raise _out_of_order(delta.index, "lies after the final delta")
        self._early[delta.index] = delta

    def _add(self, delta: ResponseDelta) -> None:
        if self._primary.finish is not None:
            raise _out_of_order(delta.index, "lies after the final delta")
        self.answer.add(delta)
        if self._primary.finish is not None and self._early:
            refused = min(self._early)
            self._early.clear()
            raise _out_of_order(refused, "lies after the final delta")

    def build(self) -> ChatResponse:
        """The complete response.

        Raises:
            ResponseValidationError: the final delta, or one before it, is missing (``ACODE-RSP-008``).
        """
        with self._lock:
            if self._primary.finish is None:
                missing = f"delta {self.answer.delta_count}" if self._early else "the final delta"
                raise ResponseValidationError(
                    f"Cannot build incomplete response: {missing} has not come",
                    code="ACODE-RSP-008",
                )
            return self.answer.response(self._primary.finish)

    def build_partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Everything so far as an error response: for an answer that will not become complete."""
        with self._lock:
            return self.answer.partial(error)

    def _joined(self, kind: SegmentType) -> str:
        with self._lock:
            return self._primary.joined(kind)

    def _build_primary(self) -> Built:
        with self._lock:
            return self._primary.build("", 0, {}, partial=True)


def accumulate(deltas: Iterable[ResponseDelta]) -> ChatResponse:
    """The response that *deltas* add up to, whatever their order.

    Raises:
        ResponseValidationError: one is missing (``ACODE-RSP-008``) or repeated (``-010``).
    """
    accumulator = DeltaAccumulator()
    for delta in deltas:
        accumulator.append(delta)
    return accumulator.build()


def _out_of_order(index: int, cause: str) -> ResponseValidationError:
    return ResponseValidationError(
        f"Accumulator received out-of-order delta: index {index} {cause}", code="ACODE-RSP-010"
    )
