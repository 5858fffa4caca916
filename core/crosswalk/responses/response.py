"""The response, the body of the request for it, and the large unions in both, which are loaded on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from crosswalk.responses.content import (
    AccessPrograms,
    Conversation,
    ImageOptions,
    IncompleteDetails,
    InputTransformation,
    Moderation,
    PromptCacheDiagnostics,
    PromptCacheOptions,
    Reasoning,
    ResponseError,
    ResponsePrompt,
    ResponseTextConfig,
    UnknownTransformation,
)
from crosswalk.responses.function_tools import FunctionTool, ToolChoice
from crosswalk.responses.messages import (
    Item,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from crosswalk.responses.records import LazyFamily, ResponsesRecord, record
from crosswalk.responses.vocabulary import ResponseStatus

# ---------------------------------------------------------------------------------- unions
# Large unions of records, loaded on demand because most answers contain few of their types.
#
# ``attrs.fields()`` shows a field of such a type as ``Annotated[base class, LazyFamily]``. Its ``LazyFamily.union`` is
# the union.


if TYPE_CHECKING:
    from crosswalk.responses.items import (
        ResponseInputItem as ResponseInputItem,
        ResponseOutputItem as ResponseOutputItem,
    )
    from crosswalk.responses.tools import Tool as Tool
else:
    ResponseOutputItem = Annotated[
        Item,
        LazyFamily(
            "crosswalk.responses.items",
            "ResponseOutputItem",
            (ResponseOutputMessage, ResponseReasoningItem, ResponseFunctionToolCall),
        ),
    ]
    ResponseInputItem = Annotated[Item, LazyFamily("crosswalk.responses.items", "ResponseInputItem")]
    Tool = Annotated[ResponsesRecord, LazyFamily("crosswalk.responses.tools", "Tool", (FunctionTool,))]


# -------------------------------------------------------------------------------- response
# The response: the model's answer, and the server's report about it.


@record
class CacheWriteTokensDetails(ResponsesRecord):
    """Tokens written to the cache, by how long they stay there."""

    ttl_30m_tokens: int | None = None
    ttl_12h_tokens: int | None = None


@record
class InputTokensDetails(ResponsesRecord):
    """Parts of the input tokens.

    Attributes:
        cached_tokens: read from the cache.
        cache_write_tokens: written to the cache.
        cache_write_tokens_details: see its class.
    """

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_tokens_details: CacheWriteTokensDetails | None = None


@record
class OutputTokensDetails(ResponsesRecord):
    """Parts of the output tokens.

    Attributes:
        reasoning_tokens: spent on thinking.
    """

    reasoning_tokens: int | None = None


@record
class ResponseUsage(ResponsesRecord):
    """Tokens of a response, all turns of the server's tools together.

    Attributes:
        input_tokens: of the prompt, cached ones included.
        output_tokens: of the answer, reasoning included.
        total_tokens: both, as the server adds them up.
        input_tokens_details: see its class.
        output_tokens_details: see its class.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    input_tokens_details: InputTokensDetails | None = None
    output_tokens_details: OutputTokensDetails | None = None


@record
class ModalityTokens(ResponsesRecord):
    """Tokens by modality."""

    image_tokens: int | None = None
    text_tokens: int | None = None


@record
class CachedTokensDetails(ResponsesRecord):
    """Cached tokens by modality."""

    cached_image_tokens: int | None = None
    cached_text_tokens: int | None = None


@record
class ImageGenerationUsage(ResponsesRecord):
    """Tokens of images that the server made, not included in :class:`ResponseUsage`."""

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    input_tokens_details: ModalityTokens | None = None
    output_tokens_details: ModalityTokens | None = None
    cached_tokens: int | None = None
    cached_tokens_details: CachedTokensDetails | None = None


@record
class WebSearchUsage(ResponsesRecord):
    """The number of web searches."""

    num_requests: int


@record
class ToolUsage(ResponsesRecord):
    """The usage of the server's tools."""

    image_gen: ImageGenerationUsage | None = None
    web_search: WebSearchUsage | None = None


@record
class Response(ResponsesRecord):
    """An answer of the Responses API.

    Citations are equal if they cite the same source, whatever their position and title (see
    :class:`AnnotationURLCitation`), and so are responses that differ in nothing else. To compare the whole content of
    responses, compare :func:`crosswalk.responses.to_dict` of the two.

    Attributes:
        id: its id.
        object: ``response``.
        created_at: when it was created, in seconds since 1970.
        completed_at: when it was completed, in seconds since 1970.
        status: its progress.
        model: the model that answered.
        output: the items of the answer, in order.
        usage: tokens, or ``None`` before the end.
        error: why it failed.
        incomplete_details: why it is incomplete.
        instructions: the first instructions to the model: text or items.
        tools: the tools that it may use.
        tool_choice: the tools that it must, may or must not use.
        parallel_tool_calls: whether it may call several at a time.
        max_tool_calls: the greatest number of calls of the server's tools.
        temperature: 0 to 2.
        top_p: 0 to 1.
        top_logprobs: the number of tokens to report at each position.
        max_output_tokens: the greatest number of tokens.
        text: how the answer is written.
        reasoning: how the model thinks.
        truncation: ``auto`` or ``disabled``.
        previous_response_id: the response before it.
        conversation: the conversation that it belongs to.
        prompt: a stored prompt.
        background: whether it was made in the background.
        service_tier: the tier that served it.
        metadata: the caller's own notes.
        user: the caller's user, an older field.
        safety_identifier: the caller's user.
        prompt_cache_key: the caller's group of similar prompts.
        prompt_cache_retention: how long prompts stay cached.
        prompt_cache_options: see its class.
        prompt_cache_diagnostics: see its class.
        moderation: see its class.
        input_transformations: the server's changes to the input.
        image: how images of earlier turns are treated.
        tool_usage: the usage of the server's tools, in addition to ``usage``.
        access_programs: special access that the request was given.
    """

    id: str | None = None
    object: Literal["response"] = "response"
    created_at: float | None = None
    completed_at: float | None = None
    status: ResponseStatus | None = None
    model: str | None = None
    output: tuple[ResponseOutputItem, ...] = ()
    usage: ResponseUsage | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | tuple[ResponseInputItem, ...] | None = None
    tools: tuple[Tool, ...] = ()
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
    conversation: Conversation | None = None
    prompt: ResponsePrompt | None = None
    background: bool | None = None
    service_tier: str | None = None
    metadata: Mapping[str, str] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    prompt_cache_diagnostics: PromptCacheDiagnostics | None = None
    moderation: Moderation | None = None
    input_transformations: tuple[InputTransformation | UnknownTransformation, ...] | None = None
    image: ImageOptions | None = None
    tool_usage: ToolUsage | None = None
    access_programs: AccessPrograms | None = None

    @property
    def output_text(self) -> str:
        """The text of all messages, without refusals."""
        return "".join(item.text for item in self.output if isinstance(item, ResponseOutputMessage))


# ---------------------------------------------------------------------------------- params
# The body of a request for a response.


@record
class ContextManagement(ResponsesRecord):
    """How the server keeps the conversation short.

    Attributes:
        type: ``compaction``.
        compact_threshold: the number of tokens above which the server compacts.
    """

    type: str
    compact_threshold: int | None = None


@record
class ModerationRule(ResponsesRecord):
    """The action of moderation: ``score`` or ``block``."""

    mode: str


@record
class ModerationPolicy(ResponsesRecord):
    """The actions of moderation for input and output."""

    input: ModerationRule | None = None
    output: ModerationRule | None = None


@record
class ModerationOptions(ResponsesRecord):
    """Asks for a moderation.

    Attributes:
        model: the moderation model.
        policy: its actions.
    """

    model: str
    policy: ModerationPolicy | None = None


@record
class StreamOptions(ResponsesRecord):
    """How a stream is sent.

    Attributes:
        include_obfuscation: whether deltas are padded, so that their lengths reveal nothing.
    """

    include_obfuscation: bool | None = None


@record
class ResponseCreateParams(ResponsesRecord):
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
        background_options: the time by which it is answered in the background, and an id to put such requests in order.
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
    background_options: Mapping[str, str] | None = None
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
