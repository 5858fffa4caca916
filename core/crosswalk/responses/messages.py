"""Messages and reasoning."""

from typing import Any, Literal

from crosswalk.responses.content import (
    InputContent,
    OutputContent,
    ReasoningText,
    ResponseOutputRefusal,
    ResponseOutputText,
    SummaryText,
    UnknownPart,
)
from crosswalk.responses.item import Item
from crosswalk.responses.records import record
from crosswalk.responses.vocabulary import ItemStatus, MessageRole


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
