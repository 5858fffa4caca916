"""The response, the body of the request for it, and the large unions in both, which are loaded on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from crosswalk.responses.content import (
    Conversation,
    IncompleteDetails,
    Reasoning,
    ResponseError,
    ResponsePrompt,
    ResponseTextConfig,
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
from crosswalk.types.json import FrozenObject

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
class InputTokensDetails(ResponsesRecord):
    """Parts of the input tokens.

    Attributes:
        cached_tokens: read from the cache.
        cache_write_tokens: written to the cache.
        cache_write_tokens_details: the same by how long they stay there.
    """

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_tokens_details: FrozenObject | None = None


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
        prompt_cache_options: how the prompt is cached.
        prompt_cache_diagnostics: why the prompt was cached or not.
        moderation: the moderation of input and output.
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
    prompt_cache_options: FrozenObject | None = None
    prompt_cache_diagnostics: FrozenObject | None = None
    moderation: FrozenObject | None = None
    input_transformations: tuple[FrozenObject, ...] | None = None
    image: FrozenObject | None = None
    tool_usage: FrozenObject | None = None
    access_programs: FrozenObject | None = None

    @property
    def output_text(self) -> str:
        """The text of all messages, without refusals."""
        return "".join(item.text for item in self.output if isinstance(item, ResponseOutputMessage))


# ---------------------------------------------------------------------------------- params
# The body of a request for a response.


@record
class ResponseCreateParams(ResponsesRecord):
    """A request for a response: ``to_json`` of it is the body of ``POST /v1/responses``.

    Fields without a description are as in :class:`crosswalk.responses.Response`, in which the server repeats them.

    Attributes:
        model: the model to answer.
        input: the input of the model: text or items.
        include: further fields to send, such as ``reasoning.encrypted_content``.
        stream: whether to answer as a stream.
        stream_options: how a stream is sent.
        stream_id: the lane of a WebSocket.
        store: whether the server stores the response.
        generate: whether to answer at all, on a WebSocket.
        background: whether to answer in the background.
        background_options: the time by which it is answered in the background, and an id to put such requests in order.
        conversation: the conversation that it belongs to, or its id.
        context_management: how the server keeps the conversation short.
        moderation: the moderation that is asked for.
    """

    model: str | None = None
    input: str | tuple[ResponseInputItem, ...] | None = None
    instructions: str | None = None
    include: tuple[str, ...] | None = None
    stream: bool | None = None
    stream_options: FrozenObject | None = None
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
    context_management: tuple[FrozenObject, ...] | None = None
    service_tier: str | None = None
    metadata: Mapping[str, str] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: FrozenObject | None = None
    moderation: FrozenObject | None = None
    image: FrozenObject | None = None
    access_programs: FrozenObject | None = None
