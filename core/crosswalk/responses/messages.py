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

__all__ = ["EasyInputMessage", "InputMessage", "ResponseOutputMessage", "ResponseReasoningItem"]


@record
class ResponseOutputMessage(Item):
    """A message of the model.

    Attributes:
        content: its parts.
        status: how far it has come.
        phase: ``commentary`` before calls of tools, ``final_answer`` at the end; to be sent back.
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
        """Why the model refused, or ``None`` when it did not."""
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
        role: who speaks; not the assistant.
        content: its parts.
        status: how far it has come; sent by the server only.
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
        role: who speaks.
        content: text or parts.
        phase: of an earlier message of the assistant, as it was received.
    """

    type: Literal["message"] | None = None
    role: MessageRole
    content: str | tuple[InputContent, ...]
    phase: str | None = None

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether it has a role and something to say."""
        return "role" in data or "content" in data


@record
class ResponseReasoningItem(Item):
    """Reasoning of the model; to be sent back as it came.

    Attributes:
        summary: what it thought, in short; often empty.
        content: what it thought, by servers that tell.
        encrypted_content: what it thought, for the server alone; where it was asked for.
        status: how far it has come.
    """

    type: Literal["reasoning"] = "reasoning"
    summary: tuple[SummaryText | UnknownPart, ...] = ()
    content: tuple[ReasoningText | UnknownPart, ...] | None = None
    encrypted_content: str | None = None
    status: ItemStatus | None = None

    @property
    def text(self) -> str:
        """What it thought, or else the summary, its paragraphs with blank lines between them."""
        texts = [part.text for part in self.content or () if isinstance(part, ReasoningText)]
        if texts:
            return "".join(texts)
        return "\n\n".join(part.text for part in self.summary if isinstance(part, SummaryText))
