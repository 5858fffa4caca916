"""Items of the Responses API while they are being written."""

from __future__ import annotations

from typing import Any

from crosswalk.convert.arguments import JSONObjectText
from crosswalk.convert.source import put_back
from crosswalk.wire.responses import ITEMS, PARTS, ItemRole

__all__ = ["HeldCall", "OpenItem", "OpenPart"]


class OpenPart:
    """A part of an item while it is written.

    Attributes:
        type: its type, of :data:`crosswalk.wire.responses.PARTS`.
        index: its place in its list.
        part: the number of the part of the answer that it is.
    """

    def __init__(self, type: str, index: int, part: int) -> None:
        self.type = type
        self.index = index
        self.part = part
        self.texts: list[str] = []
        self.annotations: list[dict[str, Any]] = []
        self.logprobs: list[dict[str, Any]] = []

    @property
    def list(self) -> str:
        """The list of its item that it stands in."""
        return PARTS[self.type].list

    @property
    def text(self) -> str:
        """Its text so far."""
        return "".join(self.texts)

    def value(self) -> dict[str, Any]:
        """It, as far as it goes."""
        said: dict[str, Any] = {"type": self.type, PARTS[self.type].leaf: self.text}
        if self.type == "output_text":
            said["annotations"] = list(self.annotations)
            if self.logprobs:
                said["logprobs"] = list(self.logprobs)
        return said


class OpenItem:
    """An item of the output while it is written.

    Attributes:
        index: its place in the output.
        id: its id.
        type: its type.
        place: its place among what is kept of the output that was read; ``None`` where none is kept.
        about: what is known of it beside its texts.
        whole: all of it, where it is written at once.
    """

    def __init__(self, index: int, id: str, type: str, place: int | None = None) -> None:
        self.index = index
        self.id = id
        self.type = type
        self.place = place
        self.about: dict[str, Any] = {}
        self.parts: list[OpenPart] = []
        self.arguments: list[str] = []
        self.syntax = JSONObjectText()
        self.whole: dict[str, Any] | None = None

    def value(self, status: str, left: dict[str, Any] | None = None) -> dict[str, Any]:
        """It, as far as it goes; with what is *left* of the item that was read, which tells the status, too."""
        if self.whole is not None:
            return self.whole
        said: dict[str, Any] = {"id": self.id, "type": self.type, **self.about}
        if left is None:
            said["status"] = status
        if self.type == "message":
            said["role"] = "assistant"
            said["content"] = self._parts("content")
        elif self.type == "reasoning":
            said["summary"] = self._parts("summary")
            content = self._parts("content")
            if content:
                said["content"] = content
        elif ITEMS[self.type].role is ItemRole.CALL:
            text = "".join(self.arguments)
            is_given = bool(text) or left is not None or status == "in_progress"
            said[ITEMS[self.type].fields[0]] = text if is_given else "{}"
        if left is not None:
            put_back(said, left)
        return said

    def _parts(self, place: str) -> list[dict[str, Any]]:
        return [part.value() for part in self.parts if part.list == place]


class HeldCall:
    """A call whose name or id has not come yet."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.texts: list[str] = []
