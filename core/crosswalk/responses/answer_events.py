"""Events of the response as a whole, of its items, and of its texts."""

from typing import Any, ClassVar, Literal, TypeAlias

from crosswalk.responses.content import Annotation, ErrorDetail, Logprob, StreamedPart
from crosswalk.responses.records import ResponsesRecord, Unknown, record
from crosswalk.responses.response import Response, ResponseOutputItem
from crosswalk.types.json import FrozenObject

# ----------------------------------------------------------------------------------- event
# The base of all stream events.


@record
class Event(ResponsesRecord):
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


# ------------------------------------------------------------------------------- lifecycle
# Events of the response as a whole, of its items and of the connection.


@record
class ResponseEvent(Event):
    """A new state of the response as a whole.

    Attributes:
        response: the response so far. Fields may be missing before the end.
    """

    response: Response


@record
class ResponseCreatedEvent(ResponseEvent):
    """The response exists."""

    type: Literal["response.created"] = "response.created"


@record
class ResponseQueuedEvent(ResponseEvent):
    """The response waits."""

    type: Literal["response.queued"] = "response.queued"


@record
class ResponseInProgressEvent(ResponseEvent):
    """The model works."""

    type: Literal["response.in_progress"] = "response.in_progress"


@record
class ResponseCompletedEvent(ResponseEvent):
    """The response is complete, and the stream ends."""

    type: Literal["response.completed"] = "response.completed"


@record
class ResponseIncompleteEvent(ResponseEvent):
    """The response ends before its time, and the stream ends."""

    type: Literal["response.incomplete"] = "response.incomplete"


@record
class ResponseFailedEvent(ResponseEvent):
    """The response failed, and the stream ends."""

    type: Literal["response.failed"] = "response.failed"


@record
class ResponseCancelledEvent(ResponseEvent):
    """The response was cancelled, and the stream ends."""

    type: Literal["response.cancelled"] = "response.cancelled"


@record
class ResponseKeepAliveEvent(Event):
    """A sign that the connection is alive. OpenAI sends it while a model works."""

    type: Literal["keepalive"] = "keepalive"


@record
class ResponseOutputItemAddedEvent(Event):
    """An item begins.

    Attributes:
        output_index: its position in the output. Some servers send none.
        item: the item so far.
    """

    type: Literal["response.output_item.added"] = "response.output_item.added"
    output_index: int | None = None
    item: ResponseOutputItem


@record
class ResponseOutputItemDoneEvent(Event):
    """An item ends.

    Attributes:
        output_index: its position in the output. Some servers send none.
        item: the whole item.
    """

    type: Literal["response.output_item.done"] = "response.output_item.done"
    output_index: int | None = None
    item: ResponseOutputItem


@record
class ResponseErrorEvent(Event):
    """The server failed, and the stream ends. Some servers, and WebSockets, nest the fields in ``error``.

    Attributes:
        type: ``error``. Some servers leave it out.
        message: the description.
        code: the error code.
        param: the parameter at fault.
        error: the same fields, nested.
        status: the HTTP status, on a WebSocket.
    """

    type: Literal["error"] | None = "error"
    message: str | None = None
    code: str | int | None = None
    param: str | None = None
    error: ErrorDetail | str | None = None
    status: int | None = None

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether an event without a type is one."""
        return "error" in data


@record
class ResponseSteerAcceptedEvent(Event):
    """Input was taken, on a WebSocket."""

    type: Literal["response.steer.accepted"] = "response.steer.accepted"
    steer: FrozenObject


@record
class ResponseSteerPendingEvent(Event):
    """Input waits, on a WebSocket.

    Attributes:
        steer: the input.
        reason: the reason.
        required_input: the input that it waits for.
    """

    type: Literal["response.steer.pending"] = "response.steer.pending"
    steer: FrozenObject
    reason: str
    required_input: tuple[FrozenObject, ...] = ()


@record
class ResponseSteerFailedEvent(Event):
    """Input could not join, on a WebSocket."""

    type: Literal["response.steer.failed"] = "response.steer.failed"
    steer: FrozenObject
    error: FrozenObject


LifecycleEvent: TypeAlias = (
    ResponseCreatedEvent
    | ResponseQueuedEvent
    | ResponseInProgressEvent
    | ResponseCompletedEvent
    | ResponseIncompleteEvent
    | ResponseFailedEvent
    | ResponseCancelledEvent
    | ResponseKeepAliveEvent
    | ResponseOutputItemAddedEvent
    | ResponseOutputItemDoneEvent
    | ResponseErrorEvent
    | ResponseSteerAcceptedEvent
    | ResponseSteerPendingEvent
    | ResponseSteerFailedEvent
)
"""An event of the response as a whole, or of an item."""


# ------------------------------------------------------------------------------------ text
# Events of text, refusals, reasoning and audio.


@record
class ResponseContentPartAddedEvent(PartEvent):
    """A content part begins."""

    type: Literal["response.content_part.added"] = "response.content_part.added"
    part: StreamedPart


@record
class ResponseContentPartDoneEvent(PartEvent):
    """A content part ends, with ``part`` complete."""

    type: Literal["response.content_part.done"] = "response.content_part.done"
    part: StreamedPart


@record
class ResponseReasoningPartAddedEvent(PartEvent):
    """A part of the content of reasoning begins, from vLLM and Amazon Bedrock."""

    type: Literal["response.reasoning_part.added"] = "response.reasoning_part.added"
    part: StreamedPart


@record
class ResponseReasoningPartDoneEvent(PartEvent):
    """A part of the content of reasoning ends, with ``part`` complete."""

    type: Literal["response.reasoning_part.done"] = "response.reasoning_part.done"
    part: StreamedPart


@record
class ResponseTextDeltaEvent(PartEvent):
    """More text.

    Attributes:
        delta: the new text.
        logprobs: its tokens, if they were requested.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    delta: str
    logprobs: tuple[Logprob, ...] | None = None
    obfuscation: str | None = None


@record
class ResponseTextDoneEvent(PartEvent):
    """The whole text of a part."""

    type: Literal["response.output_text.done"] = "response.output_text.done"
    text: str
    logprobs: tuple[Logprob, ...] | None = None


@record
class ResponseOutputTextAnnotationAddedEvent(PartEvent):
    """Text has a new annotation.

    Attributes:
        annotation: the annotation.
        annotation_index: its position among those of its part.
    """

    type: Literal["response.output_text.annotation.added"] = "response.output_text.annotation.added"
    annotation: Annotation | None = None
    annotation_index: int | None = None


@record
class ResponseRefusalDeltaEvent(PartEvent):
    """More of a refusal."""

    type: Literal["response.refusal.delta"] = "response.refusal.delta"
    delta: str


@record
class ResponseRefusalDoneEvent(PartEvent):
    """A whole refusal."""

    type: Literal["response.refusal.done"] = "response.refusal.done"
    refusal: str


@record
class ResponseReasoningTextDeltaEvent(PartEvent):
    """More reasoning."""

    type: Literal["response.reasoning_text.delta"] = "response.reasoning_text.delta"
    delta: str


@record
class ResponseReasoningTextDoneEvent(PartEvent):
    """The whole text of a part of the reasoning."""

    type: Literal["response.reasoning_text.done"] = "response.reasoning_text.done"
    text: str


@record
class SummaryEvent(ItemEvent):
    """Something that happened to a summary of reasoning.

    Attributes:
        summary_index: the paragraph's position in the summary.
    """

    summary_index: int | None = None


@record
class ResponseReasoningSummaryPartAddedEvent(SummaryEvent):
    """A paragraph of a summary begins."""

    type: Literal["response.reasoning_summary_part.added"] = "response.reasoning_summary_part.added"
    part: StreamedPart


@record
class ResponseReasoningSummaryPartDoneEvent(SummaryEvent):
    """A paragraph of a summary ends.

    Attributes:
        part: the whole paragraph.
        status: ``incomplete`` when it was cut off.
    """

    type: Literal["response.reasoning_summary_part.done"] = "response.reasoning_summary_part.done"
    part: StreamedPart
    status: str | None = None


@record
class ResponseReasoningSummaryTextDeltaEvent(SummaryEvent):
    """More of a paragraph of a summary.

    Attributes:
        delta: the new text.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.reasoning_summary_text.delta"] = "response.reasoning_summary_text.delta"
    delta: str
    obfuscation: str | None = None


@record
class ResponseReasoningSummaryTextDoneEvent(SummaryEvent):
    """The whole text of a paragraph of a summary."""

    type: Literal["response.reasoning_summary_text.done"] = "response.reasoning_summary_text.done"
    text: str


@record
class ResponseAudioDeltaEvent(Event):
    """More audio, in base64."""

    type: Literal["response.audio.delta"] = "response.audio.delta"
    delta: str


@record
class ResponseAudioDoneEvent(Event):
    """The audio is complete."""

    type: Literal["response.audio.done"] = "response.audio.done"


@record
class ResponseAudioTranscriptDeltaEvent(Event):
    """More of the transcript of the audio."""

    type: Literal["response.audio.transcript.delta"] = "response.audio.transcript.delta"
    delta: str


@record
class ResponseAudioTranscriptDoneEvent(Event):
    """The transcript of the audio is complete."""

    type: Literal["response.audio.transcript.done"] = "response.audio.transcript.done"


TextEvent: TypeAlias = (
    ResponseContentPartAddedEvent
    | ResponseContentPartDoneEvent
    | ResponseReasoningPartAddedEvent
    | ResponseReasoningPartDoneEvent
    | ResponseTextDeltaEvent
    | ResponseTextDoneEvent
    | ResponseOutputTextAnnotationAddedEvent
    | ResponseRefusalDeltaEvent
    | ResponseRefusalDoneEvent
    | ResponseReasoningTextDeltaEvent
    | ResponseReasoningTextDoneEvent
    | ResponseReasoningSummaryPartAddedEvent
    | ResponseReasoningSummaryPartDoneEvent
    | ResponseReasoningSummaryTextDeltaEvent
    | ResponseReasoningSummaryTextDoneEvent
    | ResponseAudioDeltaEvent
    | ResponseAudioDoneEvent
    | ResponseAudioTranscriptDeltaEvent
    | ResponseAudioTranscriptDoneEvent
)
"""An event of a content part: text, reasoning, refusal, audio."""
