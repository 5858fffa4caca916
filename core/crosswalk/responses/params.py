"""The body of a request for a response."""

from collections.abc import Mapping

from crosswalk.responses.details import (
    AccessPrograms,
    Conversation,
    ImageOptions,
    PromptCacheOptions,
    ResponsePrompt,
)
from crosswalk.responses.formats import Reasoning, ResponseTextConfig
from crosswalk.responses.records import Record, record
from crosswalk.responses.tool_choice import ToolChoice
from crosswalk.responses.unions import ResponseInputItem, Tool


@record
class ContextManagement(Record):
    """How the server keeps the conversation short.

    Attributes:
        type: ``compaction``.
        compact_threshold: the number of tokens above which the server compacts.
    """

    type: str
    compact_threshold: int | None = None


@record
class ModerationRule(Record):
    """The action of moderation: ``score`` or ``block``."""

    mode: str


@record
class ModerationPolicy(Record):
    """The actions of moderation for input and output."""

    input: ModerationRule | None = None
    output: ModerationRule | None = None


@record
class ModerationOptions(Record):
    """Asks for a moderation.

    Attributes:
        model: the moderation model.
        policy: its actions.
    """

    model: str
    policy: ModerationPolicy | None = None


@record
class StreamOptions(Record):
    """How a stream is sent.

    Attributes:
        include_obfuscation: whether deltas are padded, so that their lengths reveal nothing.
    """

    include_obfuscation: bool | None = None


@record
class ResponseCreateParams(Record):
    """A request for a response: ``to_json`` of it is the body of ``POST /v1/responses``.

    Fields without a description are as in :class:`crosswalk.responses.Response`, in which the server repeats them.

    Attributes:
        model: the model to answer.
        input: the input of the model: text or items.
        include: further fields to send, such as ``reasoning.encrypted_content``.
        stream: whether to answer as a stream.
        stream_options: see its class.
        stream_id: the lane of a WebSocket.
        store: whether the server stores the response.
        generate: whether to answer at all, on a WebSocket.
        background: whether to answer in the background.
        conversation: the conversation that it belongs to, or its id.
        context_management: see its class.
        moderation: see its class.
    """

    model: str | None = None
    input: str | tuple[ResponseInputItem, ...] | None = None
    instructions: str | None = None
    include: tuple[str, ...] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stream_id: str | None = None
    store: bool | None = None
    generate: bool | None = None
    background: bool | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    max_output_tokens: int | None = None
    text: ResponseTextConfig | None = None
    reasoning: Reasoning | None = None
    truncation: str | None = None
    previous_response_id: str | None = None
    conversation: str | Conversation | None = None
    prompt: ResponsePrompt | None = None
    context_management: tuple[ContextManagement, ...] | None = None
    service_tier: str | None = None
    metadata: Mapping[str, str] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    moderation: ModerationOptions | None = None
    image: ImageOptions | None = None
    access_programs: AccessPrograms | None = None
