"""The scratch pad of one stream, and the rules that are the same for every provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from crosswalk.types.metadata import Provenance
from crosswalk.types.tools import ToolCallDelta

__all__ = ["MappingState", "ToolSlot"]


class ToolSlot:
    """One tool call of one choice, as far as it is known.

    Attributes:
        index: its place among the calls of its choice, in order of first appearance.
        id: the provider's id; ``None`` until one comes.
        name: the tool's name; ``None`` until one comes.
        wire_index: the provider's own index; ``None`` where it sends none.
    """

    __slots__ = ("id", "index", "name", "wire_index")

    def __init__(self, index: int, wire_index: int | None) -> None:
        self.index = index
        self.wire_index = wire_index
        self.id: str | None = None
        self.name: str | None = None


class MappingState:
    """What one stream's mapping remembers between its events (design, section 5).

    Attributes:
        provider: the provider id.
        data: the plugin's own notes.
        response_id: the provider's id of the response; ``None`` until it sends one.
        model: the model's name; ``None`` until the provider sends one.
        created: the provider's time of creation; ``None`` until it sends one.
        request_duration: how long the provider says the request took; ``None`` until it does.
        event_name: the SSE name of the current event; ``None`` where it has none.
        provenance: canonical path to why its value is not the provider's own word.
        choices: the numbers of the answers that have begun; each must also end.
        repeated_ids: ids that the provider gave to more than one tool call; only the first keeps it.
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.data: dict[str, Any] = {}
        self.response_id: str | None = None
        self.model: str | None = None
        self.created: datetime | None = None
        self.request_duration: timedelta | None = None
        self.event_name: str | None = None
        self.provenance: dict[str, Provenance] = {}
        self.choices: set[int] = set()
        self.repeated_ids: set[str] = set()
        self._index = 0
        self._slots: dict[int, list[ToolSlot]] = {}
        self._ids: set[str] = set()
        self._names: set[str] = set()
        self._open: dict[int, ToolSlot] = {}

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
        if id and self.response_id is None:
            self.response_id = id
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

    def has_tool_calls(self, choice: int = 0) -> bool:
        """Whether *choice* has called a tool of the client's."""
        return bool(self._slots.get(choice))

    def tool_calls(self, choice: int = 0) -> list[ToolSlot]:
        """The calls of *choice* so far, in order of first appearance."""
        return self._slots.get(choice, [])

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
        slot = None if whole else self._find(index, id, name, choice)
        if slot is None:
            slots = self._slots.setdefault(choice, [])
            slot = ToolSlot(len(slots), index)
            slots.append(slot)
        if slot.wire_index is None:
            slot.wire_index = index
        self._open[choice] = slot
        new_id = id if slot.id is None and not self._is_taken(id, choice) else None
        new_name = name if slot.name is None else None
        slot.id = slot.id or new_id
        slot.name = slot.name or new_name
        if new_id is not None:
            self._ids.add(new_id)
        if new_name is not None:
            self._names.add(new_name)
        return ToolCallDelta(slot.index, new_id, new_name, arguments or None)

    def _find(self, index: int | None, id: str | None, name: str | None, choice: int) -> ToolSlot | None:
        """The call that a fragment continues; ``None`` when it opens a new one."""
        slots = self._slots.get(choice, [])
        opened = self._open.get(choice)
        known = next((slot for slot in slots if id is not None and slot.id == id), None)
        if index is None:
            if id is None:
                return opened if name is None else None
            if known is None and name is None and opened is not None and opened.id is None:
                return opened  # the id of the open call comes late
            return known
        if known is not None and known.wire_index in (index, None):
            return known
        # The last one of that index: servers that number every call 0 use the number anew for each.
        found = next((slot for slot in reversed(slots) if slot.wire_index == index), None)
        if found is not None:
            return None if self._is_another(found, id, name) else found
        if name is not None:
            return None  # on an index of its own, an id that is known is one that the server gave twice
        if id is None and opened is not None and opened.wire_index is None:
            return opened  # the index of the open call comes late
        return known

    @staticmethod
    def _is_another(slot: ToolSlot, id: str | None, name: str | None) -> bool:
        """Whether a fragment on the index of *slot* belongs to another call: it is named, and not as that one is.

        The name alone may be the same (two calls of one tool), so a named fragment with another id is another call.
        """
        if name is None or slot.name is None:
            return False
        if id is None or slot.id is None:
            return name != slot.name
        return id != slot.id

    def _is_taken(self, id: str | None, choice: int) -> bool:
        if id is None or all(slot.id != id for slot in self._slots[choice]):
            return False
        self.repeated_ids.add(id)
        return True

    def carries_index(self, index: Any) -> bool:
        """Whether the canonical index of a tool call says all that the provider's *index* does."""
        if type(index) is not int:
            return False
        found = False
        for slots in self._slots.values():
            same = [slot for slot in slots if slot.wire_index == index]
            if same and (len(same) > 1 or same[0].index != index):
                return False
            found = found or bool(same)
        return found

    def carries_id(self, id: Any) -> bool:
        """Whether a tool call keeps *id*, the only one to do so; nothing is also kept by saying nothing."""
        if not id:
            return True
        return isinstance(id, str) and id not in self.repeated_ids and id in self._ids

    def carries_name(self, name: Any) -> bool:
        """Whether a tool call keeps *name*; nothing is also kept by saying nothing."""
        return not name or (isinstance(name, str) and name in self._names)
