"""The base of all stream events."""

from typing import ClassVar

from crosswalk.responses.records import Record, Unknown, record


@record
class Event(Record):
    """Something that happened while a response was made.

    Attributes:
        sequence_number: its position in the stream, from 0. Some servers send none.
        stream_id: the lane of a WebSocket.
    """

    sequence_number: int | None = None
    stream_id: str | None = None


@record
class ItemEvent(Event):
    """Something that happened to an item.

    Attributes:
        item_id: the item's id.
        output_index: its position in the output. Some servers send none.
    """

    item_id: str | None = None
    output_index: int | None = None


@record
class PartEvent(ItemEvent):
    """Something that happened to a content part.

    Attributes:
        content_index: the part's position in its item. Some servers send none.
    """

    content_index: int | None = None


@record
class UnknownEvent(Unknown, Event):
    """An event of an unregistered type."""

    family: ClassVar[str] = "event"
    type: str | None = None
