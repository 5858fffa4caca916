"""The items of most answers: messages, reasoning, and calls of the caller's functions."""

from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from crosswalk.responses.content import (
    InputContent,
    OutputContent,
    ReasoningText,
    ResponseOutputRefusal,
    ResponseOutputText,
    SummaryText,
    UnknownPart,
)
from crosswalk.responses.records import ResponsesRecord, Unknown, record
from crosswalk.responses.vocabulary import ItemStatus, MessageRole
from crosswalk.types.json import FrozenObject

# ------------------------------------------------------------------------------------ item
# The base of all items, and the callers of calls.


@record
class Item(ResponsesRecord):
    """A piece of a conversation: a message, a call, its output …

    Attributes:
        id: its id, in stream events ``item_id``, or ``None`` if it has none, as in many inputs.
    """

    id: str | None = None


@record
class UnknownItem(Unknown, Item):
    """An item of a type that is not registered."""

    family: ClassVar[str] = "item"
    type: str | None = None


# -------------------------------------------------------------------------------- messages
# Messages and reasoning.


@record
class ResponseOutputMessage(Item):
    """A message of the model.

    Attributes:
        content: its parts.
        status: its progress.
        phase: ``commentary`` before calls of tools, ``final_answer`` at the end. Send it back unchanged.
    """

    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    content: tuple[OutputContent, ...] = ()
    status: ItemStatus | None = None
    phase: str | None = None

    @property
    def text(self) -> str:
        """Its text, without refusals."""
        return "".join(part.text for part in self.content if isinstance(part, ResponseOutputText))

    @property
    def refusal(self) -> str | None:
        """The model's words of refusal, or ``None`` if it did not refuse."""
        refusals = [part.refusal for part in self.content if isinstance(part, ResponseOutputRefusal)]
        return "".join(refusals) if refusals else None

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether it is the model's, with the parts that a model writes."""
        content = data.get("content")
        return (
            data.get("role") == "assistant"
            and isinstance(content, list)
            and not any(
                str(part.get("type")).startswith("input_") for part in content if isinstance(part, dict)
            )
        )


@record
class InputMessage(Item):
    """A message to the model, made of parts.

    Attributes:
        role: the author, except the assistant.
        content: its parts.
        status: its progress, sent only by the server.
    """

    type: Literal["message"] | None = "message"
    role: Literal["user", "system", "developer"]
    content: tuple[InputContent, ...]
    status: ItemStatus | None = None

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether it is made of parts and not the assistant's, and no reference to another item."""
        return (
            isinstance(data.get("content"), list) and data.get("role") != "assistant" and "phase" not in data
        )


@record
class EasyInputMessage(Item):
    """A message to the model in short: its text, or parts.

    Attributes:
        role: the author.
        content: text or parts.
        phase: of an earlier message of the assistant, as it was received.
    """

    type: Literal["message"] | None = None
    role: MessageRole
    content: str | tuple[InputContent, ...]
    phase: str | None = None

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Return whether it has a role and content."""
        return "role" in data or "content" in data


@record
class ResponseReasoningItem(Item):
    """Reasoning of the model. Send it back unchanged.

    Attributes:
        summary: the summary, often empty.
        content: the full text, if the server sends it.
        encrypted_content: the encrypted reasoning, readable only by the server, if requested.
        status: its progress.
    """

    type: Literal["reasoning"] = "reasoning"
    summary: tuple[SummaryText | UnknownPart, ...] = ()
    content: tuple[ReasoningText | UnknownPart, ...] | None = None
    encrypted_content: str | None = None
    status: ItemStatus | None = None

    @property
    def text(self) -> str:
        """The reasoning text, or else the summary, with blank lines between paragraphs."""
        texts = [part.text for part in self.content or () if isinstance(part, ReasoningText)]
        if texts:
            return "".join(texts)
        return "\n\n".join(part.text for part in self.summary if isinstance(part, SummaryText))


# -------------------------------------------------------------------------- function calls
# Calls of the caller's functions and custom tools, and what they gave.


ToolOutput: TypeAlias = str | tuple[InputContent, ...]
"""The output of a tool for the model: text, or parts."""


@record
class ResponseFunctionToolCall(Item):
    """A call of a function, for the caller to answer.

    Attributes:
        call_id: the id that the answer names, different from ``id``.
        name: the function.
        arguments: the arguments as JSON text, exactly as the model wrote it.
        status: its progress: ``incomplete`` means that the arguments are cut off.
        namespace: the group of tools that the function is in.
        async_: whether the answer may come later.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: str = ""
    status: ItemStatus | None = None
    namespace: str | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    caller: FrozenObject | None = None
    created_by: str | None = None


@record
class ResponseFunctionToolCallOutputItem(Item):
    """The answer to a call of a function.

    Attributes:
        call_id: the call.
        output: the output of the function.
        status: its progress, sent only by the server.
        name: the function.
        namespace: the group of tools that it is in.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["function_call_output"] = "function_call_output"
    call_id: str | None = None
    output: ToolOutput
    status: ItemStatus | None = None
    name: str | None = None
    namespace: str | None = None
    caller: FrozenObject | None = None
    created_by: str | None = None


@record
class ResponseCustomToolCall(Item):
    """A call of a custom tool, for the caller to answer, see :class:`ResponseFunctionToolCall`.

    Attributes:
        input: the input of the tool, which is text and not JSON.
    """

    type: Literal["custom_tool_call"] = "custom_tool_call"
    call_id: str
    name: str
    input: str = ""
    status: ItemStatus | None = None
    namespace: str | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    caller: FrozenObject | None = None
    created_by: str | None = None


@record
class ResponseCustomToolCallOutputItem(Item):
    """The answer to a call of a custom tool, see :class:`ResponseFunctionToolCallOutputItem`."""

    type: Literal["custom_tool_call_output"] = "custom_tool_call_output"
    call_id: str
    output: ToolOutput
    status: ItemStatus | None = None
    caller: FrozenObject | None = None
    created_by: str | None = None


FunctionItem: TypeAlias = (
    ResponseFunctionToolCall
    | ResponseFunctionToolCallOutputItem
    | ResponseCustomToolCall
    | ResponseCustomToolCallOutputItem
)
"""A call that the client answers, or its answer."""
