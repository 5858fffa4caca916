"""Items of a response's output, and their parts, while they are written."""

from __future__ import annotations

import attrs

from crosswalk.convert.arguments import JSONObjectText
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import Event
from crosswalk.wire.responses import ITEMS, PARTS, ItemRole

__all__ = ["HeldCall", "OpenItem", "OpenPart"]


@attrs.define(eq=False)
class OpenPart:
    """A part of an item while it is written.

    Attributes:
        type: its type, of :data:`crosswalk.wire.responses.PARTS`.
        index: its place in its list.
        part: the number of the part of the answer that it is.
        texts: its text so far.
        annotations: likewise; of a text.
        logprobs: likewise.
    """

    type: str
    index: int
    part: int
    texts: list[str] = attrs.Factory(list)
    annotations: list[Event] = attrs.Factory(list)
    logprobs: list[Event] = attrs.Factory(list)

    @property
    def text(self) -> Event:
        """Its text, under its key."""
        return {PARTS[self.type].leaf: "".join(self.texts)}

    def value(self) -> Event:
        """It, as far as it goes."""
        said: Event = {"type": self.type, **self.text}
        if self.type == "output_text":
            said["annotations"] = list(self.annotations)
            if self.logprobs:
                said["logprobs"] = list(self.logprobs)
        return said


@attrs.define(eq=False)
class OpenItem:
    """An item of the output while it is written.

    Attributes:
        index: its place in the output.
        id: its id.
        type: its type.
        place: its place among what is kept of the output that was read; ``None`` where none is kept.
        whole: all of it, where it is written at once.
        about: what is known of it beside its texts.
        parts: its parts.
        arguments: of a call, what it asks for.
        syntax: tells whether they have come to their end.
    """

    index: int
    id: str
    type: str
    place: int | None = None
    whole: Event | None = None
    about: Event = attrs.Factory(dict)
    parts: list[OpenPart] = attrs.Factory(list)
    arguments: list[str] = attrs.Factory(list)
    syntax: JSONObjectText = attrs.Factory(JSONObjectText)

    @property
    def role(self) -> ItemRole | None:
        """What it is; ``None`` for what nobody knows, which comes whole."""
        return ITEMS[self.type].role if self.type in ITEMS else None

    def value(self, status: str, left: Event | None = None) -> Event:
        """It, as far as it goes; with what is *left* of the item that was read, which tells the status, too."""
        if self.whole is not None:
            return self.whole
        said: Event = {"id": self.id, "type": self.type, **self.about}
        if left is None:
            said["status"] = status
        if self.type == "message":
            said |= {"role": "assistant", "content": self._parts("content")}
        elif self.type == "reasoning":
            content = self._parts("content")
            said |= {"summary": self._parts("summary"), **({"content": content} if content else {})}
        elif self.role is ItemRole.CALL:
            text = "".join(self.arguments)
            is_given = bool(text) or left is not None or status == "in_progress"
            nothing = "" if self.type == "custom_tool_call" else "{}"
            said[ITEMS[self.type].fields[0]] = text if is_given else nothing
        if left is not None:
            put_back(said, left)
        return said

    def _parts(self, place: str) -> list[Event]:
        return [part.value() for part in self.parts if PARTS[part.type].list == place]


@attrs.define(eq=False)
class HeldCall:
    """A call whose name or id has not come yet."""

    index: int
    id: str | None = None
    name: str | None = None
    type: str = "function_call"
    texts: list[str] = attrs.Factory(list)
