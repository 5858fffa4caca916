"""Items of a response's output, and their parts, under construction."""

from __future__ import annotations

import attrs

from crosswalk.convert.arguments import JSONObjectText
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import Event
from crosswalk.wire.responses import ITEMS, PARTS, ItemRole


@attrs.define(eq=False)
class OpenPart:
    """A part of an item under construction.

    Attributes:
        type: its type, of :data:`crosswalk.wire.responses.PARTS`.
        index: its position in its list.
        part: the number of its part of the answer.
        texts: its text so far.
        annotations: for a text, its annotations so far.
        logprobs: for a text, its log probabilities so far.
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
        """Return it, so far."""
        payload: Event = {"type": self.type, **self.text}
        if self.type == "output_text":
            payload["annotations"] = list(self.annotations)
            if self.logprobs:
                payload["logprobs"] = list(self.logprobs)
        return payload


@attrs.define(eq=False)
class OpenItem:
    """An item of the output under construction.

    Attributes:
        index: its position in the output.
        id: its id.
        type: its type.
        place: its position in the stored output, or ``None`` if it is not stored.
        whole: all of it, if it is written at once.
        about: its known metadata besides its texts.
        parts: its parts.
        arguments: for a call, its arguments.
        syntax: detects the end of the arguments.
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
        """The role of the item, or ``None`` for an unknown one, which comes whole."""
        return ITEMS[self.type].role if self.type in ITEMS else None

    def value(self, status: str, left: Event | None = None) -> Event:
        """Return it so far, with the fields *left* of the original item, which determine the status, too."""
        if self.whole is not None:
            return self.whole
        payload: Event = {"id": self.id, "type": self.type, **self.about}
        if left is None:
            payload["status"] = status
        if self.type == "message":
            payload |= {"role": "assistant", "content": self._parts("content")}
        elif self.type == "reasoning":
            content = self._parts("content")
            payload |= {"summary": self._parts("summary"), **({"content": content} if content else {})}
        elif self.role is ItemRole.CALL:
            text = "".join(self.arguments)
            is_given = bool(text) or left is not None or status == "in_progress"
            nothing = "" if self.type == "custom_tool_call" else "{}"
            payload[ITEMS[self.type].fields[0]] = text if is_given else nothing
        if left is not None:
            put_back(payload, left)
        return payload

    def _parts(self, place: str) -> list[Event]:
        return [part.value() for part in self.parts if PARTS[part.type].list == place]


@attrs.define(eq=False)
class HeldCall:
    """A call without its name or id so far."""

    index: int
    id: str | None = None
    name: str | None = None
    type: str = "function_call"
    texts: list[str] = attrs.Factory(list)
