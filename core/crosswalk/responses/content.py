"""Content parts, their annotations, the format of a text, and the other details of a response."""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import ResponsesRecord, Unknown, record
from crosswalk.responses.vocabulary import IncompleteDetailsReason
from crosswalk.types.json import FrozenObject

# ----------------------------------------------------------------------------- annotations
# Annotations of a text part: the sources that it cites and the files that it mentions.


@record
class AnnotationFileCitation(ResponsesRecord):
    """A citation of a file. Two citations of the same place in the same file are equal.

    Attributes:
        file_id: the file's id.
        filename: the file's name.
        index: the position of the citation in the text, in characters. Some models send the file's position in the list
            of files. Not compared.
        page_number: the cited page. OpenAI sends none.
        document_position: the cited position in the document. OpenAI sends none.
    """

    type: Literal["file_citation"] = "file_citation"
    file_id: str
    filename: str | None = None
    index: int | None = None
    page_number: int | None = None
    document_position: int | None = None

    @property
    def source(self) -> tuple[str, int | None, int | None]:
        """The cited place, as a key."""
        return self.file_id, self.page_number, self.document_position

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, AnnotationFileCitation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.source)


@record
class AnnotationURLCitation(ResponsesRecord):
    """A citation of a web page. Two citations of the same URL are equal.

    Attributes:
        url: the page.
        title: its title.
        start_index: the first character of the text that relies on it.
        end_index: the character after the last one.
        metadata: more about the page. OpenAI sends none. Not compared.
    """

    type: Literal["url_citation"] = "url_citation"
    url: str
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None
    metadata: FrozenObject | None = None

    @property
    def source(self) -> str:
        """The cited place, as a key."""
        return self.url

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, AnnotationURLCitation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.source)


@record
class AnnotationContainerFileCitation(ResponsesRecord):
    """A file that the code interpreter wrote into its container.

    Attributes:
        container_id: the container.
        file_id: the file.
        filename: its name.
        start_index: the first character of the text that mentions it.
        end_index: the character after the last one.
    """

    type: Literal["container_file_citation"] = "container_file_citation"
    container_id: str
    file_id: str
    filename: str | None = None
    start_index: int | None = None
    end_index: int | None = None


@record
class AnnotationFilePath(ResponsesRecord):
    """A file that the text gives as its result.

    Attributes:
        file_id: the file.
        index: its position in the list of files.
    """

    type: Literal["file_path"] = "file_path"
    file_id: str
    index: int | None = None


@record
class UnknownAnnotation(Unknown, ResponsesRecord):
    """An annotation of an unregistered type."""

    family: ClassVar[str] = "annotation"
    type: str | None = None


Annotation: TypeAlias = (
    AnnotationFileCitation
    | AnnotationURLCitation
    | AnnotationContainerFileCitation
    | AnnotationFilePath
    | UnknownAnnotation
)
"""The members of ``annotations`` of an output text."""


# --------------------------------------------------------------------------------- content
# Content parts: of the model's messages, of reasoning, and of what is sent to the model.


@record
class UnknownPart(Unknown, ResponsesRecord):
    """A content part of an unregistered type."""

    family: ClassVar[str] = "content part"
    type: str | None = None


@record
class TopLogprob(ResponsesRecord):
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
class Logprob(ResponsesRecord):
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
class ResponseOutputText(ResponsesRecord):
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
class ResponseOutputRefusal(ResponsesRecord):
    """A refusal of the model, in its own words."""

    type: Literal["refusal"] = "refusal"
    refusal: str


@record
class ReasoningText(ResponsesRecord):
    """Reasoning of the model, as full text."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


@record
class SummaryText(ResponsesRecord):
    """A paragraph of the summary of the model's reasoning."""

    type: Literal["summary_text"] = "summary_text"
    text: str


@record
class ResponseInputText(ResponsesRecord):
    """Text for the model."""

    type: Literal["input_text"] = "input_text"
    text: str
    prompt_cache_breakpoint: FrozenObject | None = None


@record
class ResponseInputImage(ResponsesRecord):
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
    prompt_cache_breakpoint: FrozenObject | None = None


@record
class ResponseInputFile(ResponsesRecord):
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
    prompt_cache_breakpoint: FrozenObject | None = None


OutputContent: TypeAlias = ResponseOutputText | ResponseOutputRefusal | UnknownPart
"""A part of a message of the model."""

InputContent: TypeAlias = ResponseInputText | ResponseInputImage | ResponseInputFile | UnknownPart
"""A part of a message to the model, or of a tool's output."""

StreamedPart: TypeAlias = (
    ResponseOutputText | ResponseOutputRefusal | ReasoningText | SummaryText | UnknownPart
)
"""A part that a stream opens or ends."""


# --------------------------------------------------------------------------------- formats
# The format of an answer's text, and the options of reasoning.


@record
class ResponseFormatText(ResponsesRecord):
    """Free text."""

    type: Literal["text"] = "text"


@record
class ResponseFormatTextJSONSchemaConfig(ResponsesRecord):
    """JSON that matches a schema.

    Attributes:
        name: names the schema.
        schema: the JSON Schema.
        description: its purpose.
        strict: whether the answer must match it.
    """

    type: Literal["json_schema"] = "json_schema"
    name: str | None = None
    schema: FrozenObject
    description: str | None = None
    strict: bool | None = None


@record
class ResponseFormatJSONObject(ResponsesRecord):
    """Any JSON object."""

    type: Literal["json_object"] = "json_object"


@record
class UnknownTextFormat(Unknown, ResponsesRecord):
    """A format of an unregistered type."""

    family: ClassVar[str] = "text format"
    type: str | None = None


ResponseFormatTextConfig: TypeAlias = (
    ResponseFormatText | ResponseFormatTextJSONSchemaConfig | ResponseFormatJSONObject | UnknownTextFormat
)
"""The format of an answer's text."""


@record
class ResponseTextConfig(ResponsesRecord):
    """How the answer is written.

    Attributes:
        format: its format.
        verbosity: its length: ``low``, ``medium``, ``high``.
    """

    format: ResponseFormatTextConfig | None = None
    verbosity: str | None = None


@record
class Reasoning(ResponsesRecord):
    """The options of reasoning.

    Attributes:
        effort: the amount: ``none``, ``minimal``, ``low``, ``medium``, ``high``, ``xhigh``, ``max``.
        summary: the form of the summary: ``auto``, ``concise``, ``detailed``.
        generate_summary: the former name of ``summary``.
        context: the earlier reasoning that the model gets: ``auto``, ``current_turn``, ``all_turns``.
        mode: ``standard`` or ``pro``.
    """

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    context: str | None = None
    mode: str | None = None


# --------------------------------------------------------------------------------- details
# The details of a response other than its output: errors, moderation, the cache, and the server's changes.


@record
class ErrorDetail(ResponsesRecord):
    """An error in the ``error`` member of HTTP bodies and some streams.

    Attributes:
        message: the description.
        type: the kind of error.
        code: the error code, a number on some servers.
        param: the parameter at fault.
        headers: HTTP headers that came with it, on a WebSocket.
        misalignment: details of a stop for misalignment.
    """

    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    headers: Mapping[str, str] | None = None
    misalignment: FrozenObject | None = None


@record
class ErrorBody(ResponsesRecord):
    """The body of an answer with an HTTP error status.

    Attributes:
        error: the error. Some servers send text, or put the fields of :class:`ErrorDetail` next to it.
    """

    error: ErrorDetail | str | None = None


@record
class ResponseError(ResponsesRecord):
    """Why a response failed.

    Attributes:
        code: the error code, such as ``rate_limit_exceeded``, a number on some servers.
        message: the description.
        param: the parameter at fault.
        type: the kind of error.
        misalignment: details of a stop for misalignment.
    """

    code: str | int | None = None
    message: str
    param: str | None = None
    type: str | None = None
    misalignment: FrozenObject | None = None


@record
class IncompleteDetails(ResponsesRecord):
    """Why a response is incomplete."""

    reason: IncompleteDetailsReason | None = None


@record
class Conversation(ResponsesRecord):
    """The conversation that a response belongs to."""

    id: str


@record
class ResponsePrompt(ResponsesRecord):
    """A stored prompt.

    Attributes:
        id: its id.
        version: its version.
        variables: the values of its variables: text or parts.
    """

    id: str
    version: str | None = None
    variables: Mapping[str, str | InputContent] | None = None
