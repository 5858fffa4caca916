"""Content parts: of the model's messages, of reasoning, and of what is sent to the model."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.annotations import Annotation
from crosswalk.responses.records import Record, Unknown, record


@record
class UnknownPart(Unknown, Record):
    """A content part of an unregistered type."""

    family: ClassVar[str] = "content part"
    type: str | None = None


@record
class TopLogprob(Record):
    """A token that the model might have chosen.

    Attributes:
        token: its text.
        logprob: the natural logarithm of its probability.
        bytes: its UTF-8 bytes.
    """

    token: str | None = None
    logprob: float | None = None
    bytes: tuple[int, ...] | None = None


@record
class Logprob(Record):
    """A token that the model chose.

    Attributes:
        token: its text.
        logprob: the natural logarithm of its probability.
        bytes: its UTF-8 bytes. Stream events have none.
        top_logprobs: the most probable tokens at this position.
    """

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top_logprobs: tuple[TopLogprob, ...] | None = None


@record
class ResponseOutputText(Record):
    """Text of the model.

    Attributes:
        text: the text.
        annotations: its citations and files.
        logprobs: its tokens, if they were requested.
    """

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: tuple[Annotation, ...] = ()
    logprobs: tuple[Logprob, ...] | None = None


@record
class ResponseOutputRefusal(Record):
    """A refusal of the model, in its own words."""

    type: Literal["refusal"] = "refusal"
    refusal: str


@record
class ReasoningText(Record):
    """Reasoning of the model, as full text."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


@record
class SummaryText(Record):
    """A paragraph of the summary of the model's reasoning."""

    type: Literal["summary_text"] = "summary_text"
    text: str


@record
class PromptCacheBreakpoint(Record):
    """A breakpoint up to which the prompt may be cached.

    Attributes:
        mode: ``explicit``.
        ttl: how long, such as ``30m``.
    """

    mode: str
    ttl: str | None = None


@record
class ResponseInputText(Record):
    """Text for the model."""

    type: Literal["input_text"] = "input_text"
    text: str
    prompt_cache_breakpoint: PromptCacheBreakpoint | None = None


@record
class ResponseInputImage(Record):
    """An image for the model, by URL (also a data URL) or as an uploaded file.

    Attributes:
        detail: how closely the model looks: ``low``, ``high``, ``auto``, ``original``.
        image_url: its URL.
        file_id: the uploaded file.
        prompt_cache_breakpoint: the breakpoint after it.
    """

    type: Literal["input_image"] = "input_image"
    detail: str | None = None
    image_url: str | None = None
    file_id: str | None = None
    prompt_cache_breakpoint: PromptCacheBreakpoint | None = None


@record
class ResponseInputFile(Record):
    """A file for the model, inline, by URL or uploaded.

    Attributes:
        filename: its name.
        file_data: its content, a data URL in base64.
        file_url: its URL.
        file_id: the uploaded file.
        detail: how closely the model looks at its pages.
        prompt_cache_breakpoint: the breakpoint after it.
    """

    type: Literal["input_file"] = "input_file"
    filename: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    detail: str | None = None
    prompt_cache_breakpoint: PromptCacheBreakpoint | None = None


OutputContent: TypeAlias = ResponseOutputText | ResponseOutputRefusal | UnknownPart
"""A part of a message of the model."""

InputContent: TypeAlias = ResponseInputText | ResponseInputImage | ResponseInputFile | UnknownPart
"""A part of a message to the model, or of a tool's output."""

StreamedPart: TypeAlias = (
    ResponseOutputText | ResponseOutputRefusal | ReasoningText | SummaryText | UnknownPart
)
"""A part that a stream opens or ends."""
