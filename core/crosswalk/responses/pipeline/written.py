"""The processor of what is written: text, reasoning, refusals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crosswalk.responses import events as ev
from crosswalk.responses.accumulator.accumulating import ResponseSnapshot
from crosswalk.responses.accumulator.drafts import ENDS, EVENT_CLASSES
from crosswalk.responses.display import Update, UpdateKind
from crosswalk.responses.item import Item
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.pipeline.watch import Places
from crosswalk.responses.response import Response
from crosswalk.wire.responses import EVENTS, LISTS, PARTS, EventRole


class WrittenProcessor:
    """Yields text, reasoning or refusals as they are written.

    The joined updates equal the text of the final response. Text without deltas is yielded with the event that has
    the complete text. A complete text that does not continue the deltas replaces them.

    Args:
        kind: ``text``, ``reasoning`` or ``refusal``.

    Attributes:
        events: the events that it takes.
    """

    def __init__(self, kind: UpdateKind) -> None:
        self.kind = kind
        self._parts = {type: part.leaf for type, part in PARTS.items() if part.segment.value == kind.value}
        self._places = Places()
        self._shown: dict[str, list[str]] = {}

        writing = (
            EVENT_CLASSES[type]
            for type, known in EVENTS.items()
            if known.role is EventRole.TEXT and known.of in self._parts
        )
        self.events: tuple[type[ev.Event], ...] = (*writing, ev.ResponseOutputItemDoneEvent, *ENDS)

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        event: Any = snapshot.event
        if isinstance(event, ev.ResponseOutputItemDoneEvent):
            return self._item(self._places.of(event.output_index, event.item.id), event.item)
        if snapshot.is_final:
            return self._rest(snapshot.response)
        if type(event) not in self.events:
            return ()
        known = EVENTS[event.type]
        location = PARTS[known.of].list
        index = getattr(event, LISTS[location]) or 0
        key = f"{self._places.of(event.output_index, event.item_id)}.{location}.{index}"
        text = getattr(event, known.leaf)
        return self._piece(key, text) if known.word == "delta" else self._whole(key, text)

    def _rest(self, response: Response) -> Iterator[Update]:
        for index, item in enumerate(response.output):
            yield from self._item(self._places.of_final(index, item.id), item)

    def _item(self, place: str, item: Item) -> Iterator[Update]:
        if not isinstance(item, ResponseOutputMessage | ResponseReasoningItem):
            return
        for name in ("summary", "content"):
            for index, part in enumerate(getattr(item, name, None) or ()):
                field = self._parts.get(part.type)
                if field is not None:
                    yield from self._whole(f"{place}.{name}.{index}", getattr(part, field))

    def _piece(self, key: str, text: str) -> Iterator[Update]:
        if text:
            self._shown.setdefault(key, []).append(text)
            yield Update(kind=self.kind, text=text, key=key)

    def _whole(self, key: str, text: str) -> Iterator[Update]:
        shown = "".join(self._shown.get(key, ()))
        if text.startswith(shown):
            yield from self._piece(key, text[len(shown) :])
        else:
            yield Update(kind=self.kind, text=text, key=key, replaces=True)
        self._shown[key] = [text]  # put together once
