"""What all stream events have in common."""

from typing import ClassVar

from crosswalk.responses.records import Record, Unknown, record

__all__ = ["Event", "ItemEvent", "PartEvent", "UnknownEvent"]


@record
class Event(Record):
    """Something that happened while a response was made.

    Attributes:
        sequence_number: its place in the stream, from 0; some servers send none.
        stream_id: the lane of a WebSocket.
    """

    sequence_number: int | None = None
    stream_id: str | None = None


@record
class ItemEvent(Event):
    """Something that happened to an item.

    Attributes:
        item_id: the item's id.
        output_index: its place in the output; some servers send none.
    """

    item_id: str | None = None
    output_index: int | None = None


@record
class PartEvent(ItemEvent):
    """Something that happened to a content part.

    Attributes:
        content_index: the part's place in its item; some servers send none.
    """

    content_index: int | None = None


@record
class UnknownEvent(Unknown, Event):
    """An event of a type that nobody registered."""

    family: ClassVar[str] = "event"
    type: str | None = None
