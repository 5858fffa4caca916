"""The contents of a stream's events so far, at each version."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

from crosswalk.responses.annotations import Annotation
from crosswalk.responses.content import Logprob, ResponseOutputText, StreamedPart
from crosswalk.responses.events import Event, KnownStreamEvent
from crosswalk.responses.families import classes_of
from crosswalk.responses.hooks import silent
from crosswalk.responses.items import KnownOutputItem, ResponseOutputItem
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.records import Unknown
from crosswalk.responses.response import Response
from crosswalk.responses.shell_calls import (
    ResponseApplyPatchToolCall,
    ResponseFunctionShellCallOutputContent,
    ResponseFunctionShellToolCall,
    ResponseFunctionShellToolCallOutput,
)
from crosswalk.wire.responses import EVENTS, LISTS, PARTS, PENDING, EventRole

__all__ = ["ENDS", "EVENT_CLASSES", "ITEM_CLASSES", "PART_CLASSES", "Draft", "DraftItem", "Log", "merged"]


EVENT_CLASSES: Final[dict[str, type[Any]]] = classes_of(KnownStreamEvent)
"""The classes of events, by type."""
ITEM_CLASSES: Final[dict[str, type[Any]]] = classes_of(KnownOutputItem)
"""The classes of items, by type."""
PART_CLASSES: Final[dict[str, type[Any]]] = classes_of(StreamedPart)
"""The classes of parts, by type."""

ENDS: Final[tuple[type[Event], ...]] = tuple(
    EVENT_CLASSES[type]
    for type, event in EVENTS.items()
    if event.role is EventRole.ERROR or (event.role is EventRole.RESPONSE and event.of not in PENDING)
)
"""The events with which a response ends."""


_NEVER: Final = -1


class Log:
    """Entries in order, each with its version, so that an earlier version can still be read."""

    __slots__ = ("_entries", "_joined", "_starts", "_versions")

    def __init__(self) -> None:
        self._joined = (0, 0, "")
        self._versions: list[int] = []
        self._entries: list[Any] = []
        self._starts: list[int] = [0]

    def add(self, version: int, entry: Any) -> None:
        """Add *entry* after the others."""
        self._versions.append(version)
        self._entries.append(entry)

    def put(self, version: int, entry: Any) -> None:
        """Replace the entries with *entry*."""
        self._starts.append(len(self._entries))
        self.add(version, entry)

    def at(self, version: int, since: int = _NEVER) -> list[Any]:
        """Return the entries at *version*, without those at *since* or before."""
        start, end = self._range(version, since)
        return self._entries[start:end]

    def text(self, version: int, since: int = _NEVER) -> str | None:
        """Return the text made of the entries, or ``None`` if there are no entries.

        The pieces are joined on first reading, so that reading after each piece stays cheap.
        """
        start, end = self._range(version, since)
        if start == end:
            return None
        first, last, text = self._joined
        if first == start and last <= end:
            text += "".join(self._entries[last:end])
            self._joined = (start, end, text)
            return text
        text = "".join(self._entries[start:end])
        if start > first:
            self._joined = (start, end, text)
        return text

    def _range(self, version: int, since: int) -> tuple[int, int]:
        end = bisect_right(self._versions, version)
        start = self._starts[max(bisect_left(self._starts, end) - 1, 0)]
        return max(start, bisect_right(self._versions, since)), end

    def last(self, version: int, since: int = _NEVER) -> tuple[Any, int]:
        """Return the last entry at *version* and its version, or ``(None, since)`` if there is none after *since*."""
        end = bisect_right(self._versions, version)
        if end == 0 or self._versions[end - 1] <= since:
            return None, since
        return self._entries[end - 1], self._versions[end - 1]


class DraftItem:
    """An item of the draft.

    Attributes:
        order: its position in the output as far as the server gave one, or ``None`` for the order of arrival.
        since: the version of its first event.
        id: its id. If the item was never opened, the id in its events.
    """

    __slots__ = ("_logs", "_opened", "id", "order", "since")

    def __init__(self, order: int | None, since: int, id: str | None) -> None:
        self.order = order
        self.since = since
        self.id = id
        self._opened: tuple[type[Any] | None, int] = (None, since)
        self._logs: dict[tuple[Any, ...], Log] = {}

    def log(self, *name: Any) -> Log:
        """Return the draft of the item's part with this name."""
        result = self._logs.get(name)
        if result is None:
            result = self._logs[name] = Log()
        return result

    @property
    def kind(self) -> type[Any] | None:
        """The kind of the item, as far as it is known."""
        item, _ = self.log("item").last(sys.maxsize)
        return self._opened[0] if item is None else type(item)

    def open_as(self, version: int, kind: type[Any]) -> None:
        """Record the *kind* that the events imply. The item itself, once it arrives, takes precedence."""
        self._opened = (kind, version)

    def put_item(self, version: int, item: ResponseOutputItem) -> None:
        """Replace everything with *item*."""
        self.log("item").put(version, item)

    def put_part(self, version: int, into: str, index: int, part: StreamedPart) -> None:
        """Replace the draft of this part with *part*."""
        self.log("part", into, index).put(version, part)

    def write_part(self, version: int, into: str, index: int, type: str, text: str, *, whole: bool) -> None:
        """Add text to a part of this *type*, or replace it with the *whole* text."""
        log = self.log("text", into, index, type)
        if whole:
            log.put(version, text)
        else:
            log.add(version, text)

    def annotate(self, version: int, index: int, annotation: Annotation) -> None:
        """Add an annotation to a part of the content."""
        self.log("annotations", "content", index).add(version, annotation)

    def add_logprobs(self, version: int, index: int, logprobs: tuple[Logprob, ...]) -> None:
        """Add tokens to a part of the content."""
        self.log("logprobs", "content", index).add(version, logprobs)

    # ------------------------------------------------------------------------------------ what it now is

    def at(self, version: int) -> ResponseOutputItem | None:
        """Return the item at *version*, or ``None`` if too little is known to build it."""
        last, since = self.log("item").last(version)
        item: ResponseOutputItem | None = last
        kind, opened = self._opened
        if item is None and version >= opened and kind in (ResponseOutputMessage, ResponseReasoningItem):
            item = kind(id=self.id)
        if item is None or isinstance(item, Unknown):
            return item
        changes: dict[str, Any] = {}
        if isinstance(item, ResponseOutputMessage | ResponseReasoningItem):
            for into in LISTS:
                if parts := self._parts(into, getattr(item, into, None) or (), version, since):
                    changes[into] = parts
        elif isinstance(item, ResponseFunctionShellToolCall):
            if commands := self._numbered("command", version, since):
                texts = {**dict(enumerate(item.action.commands)), **commands}
                changes["action"] = item.action.replace(commands=[texts[index] for index in sorted(texts)])
        elif isinstance(item, ResponseFunctionShellToolCallOutput) and (
            outputs := self._shell_outputs(version, since)
        ):
            changes["output"] = outputs
        elif isinstance(item, ResponseApplyPatchToolCall) and hasattr(item.operation, "diff"):
            diff = self.log("diff").text(version, since)
            changes["operation"] = item.operation.replace(diff=item.operation.diff if diff is None else diff)
        for name, log in self._named("field"):
            if (text := log.text(version, since)) is not None:
                changes[name[0]] = text
        status, _ = self.log("status").last(version, since)
        if status is not None:
            changes["status"] = status
        return item.replace(**changes) if changes else item

    def _named(self, first: str) -> Iterator[tuple[tuple[Any, ...], Log]]:
        for name, log in self._logs.items():
            if name[0] == first:
                yield name[1:], log

    def _numbered(self, first: str, version: int, since: int) -> dict[int, str]:
        """Return the numbered texts."""
        results = {name[0]: log.text(version, since) for name, log in self._named(first)}
        return {index: text for index, text in results.items() if text is not None}

    def _parts(
        self, into: str, base: tuple[StreamedPart, ...], version: int, since: int
    ) -> list[StreamedPart]:
        """Return the parts of a message or a reasoning item, or none if nothing changed since *base*."""
        parts: dict[int, StreamedPart] = dict(enumerate(base))
        ages = dict.fromkeys(parts, since)
        changed = False
        for (where, index), log in self._named("part"):
            part, age = log.last(version, since)
            if where == into and part is not None:
                parts[index], ages[index], changed = part, age, True
        for (where, index, type), log in self._named("text"):
            text = log.text(version, ages.get(index, since)) if where == into else None
            if text is not None:
                kind, field = PART_CLASSES[type], PARTS[type].leaf
                part = parts.get(index)
                parts[index] = (
                    part.replace(**{field: text}) if isinstance(part, kind) else kind(**{field: text})
                )
                changed = True
        for what in ("annotations", "logprobs"):
            for (where, index), log in self._named(what):
                entries = log.at(version, ages.get(index, since))
                part = parts.get(index)
                if where == into and entries and isinstance(part, ResponseOutputText):
                    more = entries if what == "annotations" else [one for some in entries for one in some]
                    parts[index] = part.replace(**{what: [*(getattr(part, what) or ()), *more]})
                    changed = True
        return [parts[index] for index in sorted(parts)] if changed else []

    def _shell_outputs(self, version: int, since: int) -> list[ResponseFunctionShellCallOutputContent]:
        outputs: dict[int, list[ResponseFunctionShellCallOutputContent]] = {}
        stdout = self._numbered("stdout", version, since)
        stderr = self._numbered("stderr", version, since)
        for index in {*stdout, *stderr}:
            running = ResponseFunctionShellCallOutputContent(
                stdout=stdout.get(index, ""), stderr=stderr.get(index, "")
            )
            outputs[index] = [running]
        for (index,), log in self._named("output"):
            ended, age = log.last(version, since)
            if age > since:
                outputs[index] = ended
        return [output for index in sorted(outputs) for output in outputs[index]]


class Draft:
    """The contents of all events of a stream."""

    def __init__(self) -> None:
        self.version = 0
        self._responses = Log()
        self._items: list[DraftItem] = []
        self._by_index: dict[int, DraftItem] = {}
        self._by_id: dict[str, DraftItem] = {}

    def put_response(self, response: Response, *, final: bool = False) -> None:
        """Record the fields of the response as a whole. The *final* response is used unchanged."""
        known, _ = self._responses.last(self.version)
        self._responses.put(
            self.version, (response if final or known is None else merged(known[0], response), final)
        )

    def find(self, index: int | None, id: str | None) -> DraftItem:
        """Return the item at *index*, or the one with this *id* if the server gives no index. Create it if needed."""
        by_id = self._by_id.get(id or "")
        result = by_id if index is None or (by_id and by_id.order is None) else self._by_index.get(index)
        if result is None:
            result = DraftItem(index, self.version, id)
            self._items.append(result)
            if index is not None:
                self._by_index[index] = result
        if id is not None:
            self._by_id.setdefault(id, result)
        return result

    def at(self, version: int) -> Response:
        """The response at *version*."""
        known, _ = self._responses.last(version)
        response, final = known or (Response(), False)
        output = self._output(version)
        # Some servers end a stream with an empty or shorter output than they sent.
        if len(output) > len(response.output) or (output and not final):
            return response.replace(output=output)
        return response

    def _output(self, version: int) -> list[ResponseOutputItem]:
        heard = self._items[: bisect_right(self._items, version, key=lambda item: item.since)]
        places = [(number if item.order is None else item.order, number) for number, item in enumerate(heard)]
        items = [heard[number].at(version) for _, number in sorted(places)]
        return [item for item in items if item is not None]


def merged(known: Response, new: Response) -> Response:
    """Return *new*, with the parts of *known* that it does not repeat."""
    absent = silent(new)
    return new.replace(
        **{name: getattr(known, name) for name in absent},
        presence=(new.presence - absent) | (known.presence & absent),
        extensions={**known.extensions, **new.extensions},
    )
