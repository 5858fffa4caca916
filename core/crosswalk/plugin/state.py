"""The scratch pad of one stream, and the rules that are the same for every provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from crosswalk.plugin.calls import ToolCalls, ToolSlot
from crosswalk.types.filter import ContentFilterCategory, ContentFilterResult, ContentFilterSeverity
from crosswalk.types.metadata import Provenance
from crosswalk.types.tools import ToolCallDelta

__all__ = ["MappingState"]

_SEVERITIES = tuple(ContentFilterSeverity)


class MappingState:
    """What one stream's mapping remembers between its events (design, section 5).

    Attributes:
        provider: the provider id.
        data: the plugin's own notes.
        response_id: the provider's id of the response; ``None`` until it sends one.
        has_other_ids: whether the provider has sent another id since.
        model: the model's name; ``None`` until the provider sends one.
        created: the provider's time of creation; ``None`` until it sends one.
        request_duration: how long the provider says the request took; ``None`` until it does.
        event_name: the SSE name of the current event; ``None`` where it has none.
        provenance: canonical path to why its value is not the provider's own word.
        choices: the numbers of the answers that have begun; each must also end.
        verdicts: the worst verdict of the provider's moderation in each category.
        repeated_ids: ids that the provider gave to more than one tool call; only the first keeps it.
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.data: dict[str, Any] = {}
        self.response_id: str | None = None
        self.has_other_ids = False
        self.model: str | None = None
        self.created: datetime | None = None
        self.request_duration: timedelta | None = None
        self.event_name: str | None = None
        self.provenance: dict[str, Provenance] = {}
        self.choices: set[int] = set()
        self.verdicts: dict[ContentFilterCategory, ContentFilterResult] = {}
        self.repeated_ids: set[str] = set()
        self._index = 0
        self._calls: dict[int, ToolCalls] = {}
        self._ids: set[str] = set()
        self._names: set[str] = set()

    def begin_event(self, index: int, name: str | None) -> None:
        """Begin the next event, of SSE name *name*: its first delta has *index*."""
        self._index = index
        self.event_name = name

    def next_index(self) -> int:
        """The index for the next delta."""
        index = self._index
        self._index += 1
        return index

    def identify(
        self, *, id: str | None = None, model: str | None = None, created: datetime | None = None
    ) -> None:
        """Note who answered; of each the first that is not empty stays."""
        if id and id != self.response_id:
            if self.response_id is None:
                self.response_id = id
            else:
                self.has_other_ids = True
        if model and self.model is None:
            self.model = model
        if created is not None and self.created is None:
            self.created = created

    def note(self, path: str, provenance: Provenance | str | None) -> None:
        """Say why the canonical field at *path* is not the provider's own word; ``None`` takes it back."""
        if provenance is None:
            self.provenance.pop(path, None)
        else:
            self.provenance[path] = Provenance(provenance)

    def judge(self, verdict: ContentFilterResult) -> None:
        """Note a *verdict* of the provider's moderation; of each category the worst stays, what was filtered above all."""
        known = self.verdicts.get(verdict.category)
        if known is None or _weight(verdict) > _weight(known):
            self.verdicts[verdict.category] = verdict

    def has_tool_calls(self, choice: int = 0) -> bool:
        """Whether *choice* has called a tool of the client's."""
        return choice in self._calls

    def tool_calls(self, choice: int = 0) -> list[ToolSlot]:
        """The calls of *choice* so far, in order of first appearance."""
        calls = self._calls.get(choice)
        return [] if calls is None else calls.slots

    def tool_call(
        self,
        *,
        index: int | None = None,
        id: str | None = None,
        name: str | None = None,
        arguments: str | None = None,
        choice: int = 0,
        whole: bool = False,
    ) -> ToolCallDelta:
        """The delta for a fragment of a tool call, by rules that hold for every provider.

        A call is found by index, else by id, else it is the open one. A fragment whose id and name both
        differ from that call's opens a new one whatever its index. A missing index is never 0. An empty
        or repeated id or name is never joined on.

        Args:
            index: the provider's index; ``None`` where it sends none.
            id: the provider's id; ``None`` or ``""`` where it sends none.
            name: the tool's name; ``None`` or ``""`` where this fragment has none.
            arguments: argument text to append.
            choice: the choice that calls.
            whole: this is a whole call, never a fragment of another one.
        """
        id, name = id or None, name or None
        calls = self._calls.get(choice)
        if calls is None:
            calls = self._calls[choice] = ToolCalls()
        slot = (None if whole else calls.find(index, id, name)) or calls.add()
        calls.open(slot, index)
        new_id = new_name = None
        if id is not None and slot.id is None:
            if calls.identify(slot, id):
                new_id = id
                self._ids.add(id)
            else:
                self.repeated_ids.add(id)
        if name is not None and slot.name is None:
            slot.name = new_name = name
            self._names.add(name)
        return ToolCallDelta(slot.index, new_id, new_name, arguments or None)

    def carries_index(self, index: Any) -> bool:
        """Whether the canonical index of a tool call says all that the provider's *index* does."""
        if type(index) is not int:
            return False
        found = [calls for calls in self._calls.values() if calls.has_index(index)]
        return bool(found) and all(index not in calls.moved for calls in found)

    def carries_id(self, id: Any) -> bool:
        """Whether a tool call keeps *id*, the only one to do so; nothing is also kept by saying nothing."""
        if not id:
            return True
        return isinstance(id, str) and id not in self.repeated_ids and id in self._ids

    def carries_name(self, name: Any) -> bool:
        """Whether a tool call keeps *name*; nothing is also kept by saying nothing."""
        return not name or (isinstance(name, str) and name in self._names)


def _weight(verdict: ContentFilterResult) -> tuple[bool, int]:
    return verdict.filtered, _SEVERITIES.index(verdict.severity)
