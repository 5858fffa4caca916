"""Which tool call a fragment belongs to: rules that hold for every provider (design, section 5).

A call is found by index, else by id, else it is the open one. A fragment whose id and name both differ from that
call's opens a new one, whatever its index. A missing index is never 0.
"""

from __future__ import annotations

__all__ = ["ToolCalls", "ToolSlot"]


class ToolSlot:
    """One tool call of one choice, as far as it is known.

    Attributes:
        index: its place among the calls of its choice, in order of first appearance.
        id: the provider's id; ``None`` until one comes.
        name: the tool's name; ``None`` until one comes.
        wire_index: the provider's own index; ``None`` where it sends none.
    """

    __slots__ = ("id", "index", "name", "wire_index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.wire_index: int | None = None
        self.id: str | None = None
        self.name: str | None = None


class ToolCalls:
    """The tool calls of one choice.

    Attributes:
        slots: the calls, in order of first appearance.
        moved: the provider's indexes that say more than the canonical ones: another number, or one used twice.
    """

    def __init__(self) -> None:
        self.slots: list[ToolSlot] = []
        self.moved: set[int] = set()
        self._open: ToolSlot | None = None
        self._by_id: dict[str, ToolSlot] = {}
        self._by_index: dict[
            int, ToolSlot
        ] = {}  # the last one: servers that number every call 0 reuse the number

    def find(self, index: int | None, id: str | None, name: str | None) -> ToolSlot | None:
        """The call that a fragment continues; ``None`` when it opens a new one."""
        opened = self._open
        known = self._by_id.get(id) if id is not None else None
        if index is None:
            if id is None:
                return opened if name is None else None
            if known is None and name is None and opened is not None and opened.id is None:
                return opened  # the id of the open call comes late
            return known
        if known is not None and known.wire_index in (index, None):
            return known
        found = self._by_index.get(index)
        if found is not None:
            return None if _is_another(found, id, name) else found
        if name is not None:
            return None  # on an index of its own, an id that is known is one that the server gave twice
        if id is None and opened is not None and opened.wire_index is None:
            return opened  # the index of the open call comes late
        return known

    def add(self) -> ToolSlot:
        """A new call."""
        slot = ToolSlot(len(self.slots))
        self.slots.append(slot)
        return slot

    def open(self, slot: ToolSlot, index: int | None) -> None:
        """Let *slot*, which came with the provider's *index*, be the call that a nameless fragment continues."""
        self._open = slot
        if slot.wire_index is None and index is not None:
            slot.wire_index = index
            if index in self._by_index or index != slot.index:
                self.moved.add(index)
            self._by_index[index] = slot

    def identify(self, slot: ToolSlot, id: str) -> bool:
        """Give *slot* its *id*; whether that was free."""
        if id in self._by_id:
            return False
        slot.id = id
        self._by_id[id] = slot
        return True

    def has_index(self, index: int) -> bool:
        """Whether a call came with the provider's *index*."""
        return index in self._by_index


def _is_another(slot: ToolSlot, id: str | None, name: str | None) -> bool:
    """Whether a fragment on the index of *slot* belongs to another call: it is named, and not as that one is.

    The name alone may be the same (two calls of one tool), so a named fragment with another id is another call.
    """
    if name is None or slot.name is None:
        return False
    if id is None or slot.id is None:
        return name != slot.name
    return id != slot.id
