"""Events of text, refusals, reasoning and audio."""

from typing import Literal, TypeAlias

from crosswalk.responses.annotations import Annotation
from crosswalk.responses.content import Logprob, StreamedPart
from crosswalk.responses.events.event import Event, ItemEvent, PartEvent
from crosswalk.responses.records import record


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
