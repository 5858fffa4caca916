"""Items of the Responses API while they are being written."""

from __future__ import annotations

from typing import Any

from crosswalk.convert.arguments import JSONObjectText
from crosswalk.responses.annotations import Annotation
from crosswalk.responses.content import Logprob, ReasoningText, ResponseOutputRefusal, ResponseOutputText
from crosswalk.responses.function_calls import ResponseFunctionToolCall
from crosswalk.responses.items import ResponseOutputItem
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.vocabulary import ItemStatus
from crosswalk.types.segment import SegmentType

__all__ = ["HeldCall", "OpenItem", "OpenPart"]


class OpenPart:
    """A text of a message, a refusal, or reasoning, while it is written."""

    def __init__(self, type: SegmentType, index: int, part: int) -> None:
        self.type = type
        self.index = index
        self.part = part
        self.texts: list[str] = []
        self.annotations: list[Annotation] = []
        self.logprobs: list[Logprob] = []

    def value(self) -> Any:
        """It, as far as it goes: a :data:`StreamedPart`."""
        text = "".join(self.texts)
        if self.type is SegmentType.REFUSAL:
            return ResponseOutputRefusal(refusal=text)
        if self.type is SegmentType.REASONING:
            return ReasoningText(text=text)
        logprobs = tuple(self.logprobs) or None
        return ResponseOutputText(text=text, annotations=tuple(self.annotations), logprobs=logprobs)


class OpenItem:
    """An item of the output while it is written."""

    def __init__(self, index: int, id: str, kind: str) -> None:
        self.index = index
        self.id = id
        self.kind = kind
        self.parts: list[OpenPart] = []
        self.phase: str | None = None
        self.encrypted: str | None = None
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.syntax = JSONObjectText()
        self.whole: ResponseOutputItem | None = None

    def value(self, status: ItemStatus) -> ResponseOutputItem:
        """It, as far as it goes."""
        if self.whole is not None:
            return self.whole
        values = tuple(part.value() for part in self.parts)
        if self.kind == "message":
            return ResponseOutputMessage(id=self.id, status=status, content=values, phase=self.phase)
        if self.kind == "reasoning":
            return ResponseReasoningItem(
                id=self.id, content=values or None, encrypted_content=self.encrypted, status=status
            )
        text = "".join(self.arguments)
        if status is not ItemStatus.IN_PROGRESS:
            text = text or "{}"
        return ResponseFunctionToolCall(
            id=self.id, call_id=self.call_id, name=self.name, arguments=text, status=status
        )


class HeldCall:
    """A call whose name or id has not come yet."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.texts: list[str] = []
