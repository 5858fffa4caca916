"""The response so far, after each event of its stream.

A snapshot consists of the draft and a number. Taking one costs the same for a response of any length, and it never
changes afterwards. The response is built only when you read it, in time proportional to its size. If later events have
come by then, the events up to the snapshot are added up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crosswalk.responses import events as ev
from crosswalk.responses.accumulator.drafts import ENDS, Draft, misfit
from crosswalk.responses.errors import SnapshotError
from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.response import Response


class ResponseSnapshot:
    """The response as it was after an event. Immutable.

    Attributes:
        event: the event.
        number: the number of events before it.
        is_final: whether the response ended with it.
    """

    __slots__ = ("_draft", "_response", "event", "is_final", "number")

    def __init__(self, draft: Draft, event: ResponseStreamEvent, *, is_final: bool) -> None:
        self._draft = draft
        self._response: Response | None = None
        self.event = event
        self.number = len(draft) - 1
        self.is_final = is_final

    @property
    def response(self) -> Response:
        """The response so far, built when it is first read.

        Fields that the server has not sent are absent, so a call without an opening event has no item. The last snapshot
        of a stream holds the response of its terminal event, plus the streamed items if the terminal event has fewer.
        After an ``error`` event the response has failed with that error.
        """
        if self._response is None:
            self._response = self._draft.at(self.number)
        return self._response

    @property
    def text(self) -> str:
        """The text so far."""
        return self.response.output_text

    def __repr__(self) -> str:
        return f"ResponseSnapshot(number={self.number}, event={self.event.type!r}, is_final={self.is_final})"


class ResponseAccumulator:
    """Accumulates the events of one response.

    Items are distinguished by ``output_index``, or by ``item_id`` if a server sends no index. The event that ends an item,
    a part or a text replaces the content of its deltas, which may be absent. Previews of images and audio have no field in
    a response, so you find them only in their events.
    """

    def __init__(self) -> None:
        self._draft = Draft()
        self._last: ResponseSnapshot | None = None
        self._sequence_number: int | None = None
        self._has_erred = False

    def add(self, event: ResponseStreamEvent) -> ResponseSnapshot:
        """Return the response after *event*.

        Raises:
            SnapshotError: the response had ended, *event* was already applied according to its ``sequence_number`` (a
                resumed stream repeats events), or it changes a part that its item does not have. The accumulator is
                unchanged.
        """
        kind, last, before = type(event), self._last, self._sequence_number
        number, is_final = event.sequence_number, kind in ENDS
        if kind is ev.ResponseKeepAliveEvent:  # its number does not say where the stream is
            is_final = last is not None and last.is_final
        else:
            # OpenAI lets its failed response follow the error.
            failing = self._has_erred and kind is ev.ResponseFailedEvent
            if last is not None and last.is_final and not failing:
                raise misfit(event, "comes after the end of the response")
            # Servers that do not count send no number, or 0 with each event.
            if number and before is not None and number <= before:
                raise misfit(event, f"comes after sequence_number {before}")
        self._draft.add(event)
        if kind is not ev.ResponseKeepAliveEvent:
            self._has_erred = kind is ev.ResponseErrorEvent
            self._sequence_number = number or before
        self._last = ResponseSnapshot(self._draft, event, is_final=is_final)
        return self._last

    @property
    def snapshot(self) -> ResponseSnapshot | None:
        """The last snapshot, or ``None`` before the first event."""
        return self._last

    def final(self) -> Response:
        """Return the complete response.

        Raises:
            SnapshotError: the stream has not ended. :attr:`snapshot` has the part that arrived.
        """
        if self._last is None:
            raise SnapshotError("no event came", event_type="stream", sequence_number=None)
        if not self._last.is_final:
            raise misfit(self._last.event, "the stream ended here, before the response did")
        return self._last.response


def snapshots(events: Iterable[ResponseStreamEvent]) -> Iterator[ResponseSnapshot]:
    """Yield a snapshot after each of *events*.

    Raises:
        SnapshotError: an event does not fit, or the stream ends before the response does.
    """
    accumulator = ResponseAccumulator()
    for event in events:
        yield accumulator.add(event)
    accumulator.final()
