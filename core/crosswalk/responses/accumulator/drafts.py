"""What the events of a stream have said so far, at each version."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

from crosswalk.responses.accumulator.classes import PART_CLASSES
from crosswalk.responses.annotations import Annotation
from crosswalk.responses.content import Logprob, ResponseOutputText, StreamedPart
from crosswalk.responses.hooks import silent
from crosswalk.responses.items import ResponseOutputItem
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.records import Unknown
from crosswalk.responses.response import Response
from crosswalk.responses.shell_calls import (
    ResponseApplyPatchToolCall,
    ResponseFunctionShellCallOutputContent,
    ResponseFunctionShellToolCall,
    ResponseFunctionShellToolCallOutput,
)
from crosswalk.wire.responses import LISTS, PARTS

__all__ = [
    "Draft",
    "DraftItem",
    "Log",
    "merged",
]


_NEVER: Final = -1


class Log:
    """Entries in order, each with its version; what it held at an earlier version can still be asked."""

    __slots__ = ("_entries", "_joined", "_starts", "_versions")

    def __init__(self) -> None:
        self._joined = (0, 0, "")
        self._versions: list[int] = []
        self._entries: list[Any] = []
        self._starts: list[int] = [0]

    def add(self, version: int, entry: Any) -> None:
        """Add *entry* to those before it."""
        self._versions.append(version)
        self._entries.append(entry)

    def put(self, version: int, entry: Any) -> None:
        """Let *entry* take the place of those before it."""
        self._starts.append(len(self._entries))
        self.add(version, entry)

    def at(self, version: int, since: int = _NEVER) -> list[Any]:
        """What it held at *version*, without what came at *since* or before."""
        start, end = self._range(version, since)
        return self._entries[start:end]

    def text(self, version: int, since: int = _NEVER) -> str | None:
        """The text that its entries are pieces of, or ``None`` when there are none.

        Who looks again finds the former pieces joined, so that looking after each piece stays cheap.
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
        """The last entry at *version*, and when it came; ``(None, since)`` when none came after *since*."""
        end = bisect_right(self._versions, version)
        if end == 0 or self._versions[end - 1] <= since:
            return None, since
        return self._entries[end - 1], self._versions[end - 1]


class DraftItem:
    """An item of the draft.

    Attributes:
        order: its place in the output, as far as the server said; ``None`` puts it where it came.
        since: the version at which it was first heard of.
        id: names it; of an item that was never opened, the one that its events name.
    """

    __slots__ = ("_logs", "_opened", "id", "order", "since")

    def __init__(self, order: int | None, since: int, id: str | None) -> None:
        self.order = order
        self.since = since
        self.id = id
        self._opened: tuple[type[Any] | None, int] = (None, since)
        self._logs: dict[tuple[Any, ...], Log] = {}

    def log(self, *name: Any) -> Log:
        """What was said about the part of the item that has this name."""
        found = self._logs.get(name)
        if found is None:
            found = self._logs[name] = Log()
        return found

    @property
    def kind(self) -> type[Any] | None:
        """What sort of item it is, so far as is known."""
        item, _ = self.log("item").last(sys.maxsize)
        return self._opened[0] if item is None else type(item)

    def open_as(self, version: int, kind: type[Any]) -> None:
        """Say of which *kind* it is, as its events tell; the item itself, once it comes, tells better."""
        self._opened = (kind, version)

    def put_item(self, version: int, item: ResponseOutputItem) -> None:
        """Let *item* take the place of all that was said."""
        self.log("item").put(version, item)

    def put_part(self, version: int, into: str, index: int, part: StreamedPart) -> None:
        """Let *part* take the place of what was said about this one."""
        self.log("part", into, index).put(version, part)

    def write_part(self, version: int, into: str, index: int, type: str, text: str, *, whole: bool) -> None:
        """More text of a part of this *type*, or the *whole* of it."""
        log = self.log("text", into, index, type)
        if whole:
            log.put(version, text)
        else:
            log.add(version, text)

    def annotate(self, version: int, index: int, annotation: Annotation) -> None:
        """One more annotation of a part of the content."""
        self.log("annotations", "content", index).add(version, annotation)

    def add_logprobs(self, version: int, index: int, logprobs: tuple[Logprob, ...]) -> None:
        """More tokens of a part of the content."""
        self.log("logprobs", "content", index).add(version, logprobs)

    # ------------------------------------------------------------------------------------ what it now is

    def at(self, version: int) -> ResponseOutputItem | None:
        """The item at *version*; ``None`` while too little is known to make one."""
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
        """The texts that were said under numbers."""
        found = {name[0]: log.text(version, since) for name, log in self._named(first)}
        return {index: text for index, text in found.items() if text is not None}

    def _parts(
        self, into: str, base: tuple[StreamedPart, ...], version: int, since: int
    ) -> list[StreamedPart]:
        """The parts of a message or a reasoning; none when nothing was said since *base*."""
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
    """All that the events of a stream have said."""

    def __init__(self) -> None:
        self.version = 0
        self._responses = Log()
        self._items: list[DraftItem] = []
        self._by_index: dict[int, DraftItem] = {}
        self._by_id: dict[str, DraftItem] = {}

    def put_response(self, response: Response, *, final: bool = False) -> None:
        """What is known of the response as a whole; the *final* one is taken as it is."""
        known, _ = self._responses.last(self.version)
        self._responses.put(
            self.version, (response if final or known is None else merged(known[0], response), final)
        )

    def find(self, index: int | None, id: str | None) -> DraftItem:
        """The item at place *index*, or where the server says no place, with this *id*; a new one if need be."""
        by_id = self._by_id.get(id or "")
        found = by_id if index is None or (by_id and by_id.order is None) else self._by_index.get(index)
        if found is None:
            found = DraftItem(index, self.version, id)
            self._items.append(found)
            if index is not None:
                self._by_index[index] = found
        if id is not None:
            self._by_id.setdefault(id, found)
        return found

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
    """*new*, completed by what of *known* it does not repeat."""
    absent = silent(new)
    return new.replace(
        **{name: getattr(known, name) for name in absent},
        presence=(new.presence - absent) | (known.presence & absent),
        extensions={**known.extensions, **new.extensions},
    )
