"""Which tool call a fragment belongs to: rules that hold for every provider.

A call is found by index, else by id, else it is the open one. A fragment whose id and name both differ from that
call's opens a new one, whatever its index, and so does one with another id where that call is complete: its arguments
are JSON, or a finish word came after it. A missing index is never 0.
"""

from __future__ import annotations

import orjson

from crosswalk.types.answer import Call


class ToolCalls:
    """Finds the tool calls of one choice by what the provider says of them.

    Args:
        calls: the calls, by their place; new ones are added.
    """

    def __init__(self, calls: dict[int, Call]) -> None:
        self._calls = calls
        self._open: Call | None = None
        self._by_id: dict[str, Call] = {}
        # Of several the last: servers that number every call 0 reuse the number.
        self._by_index: dict[int, Call] = {}

    def find(self, index: int | None, id: str | None, name: str | None, *, has_ended: bool) -> Call | None:
        """Return the call that a fragment continues, or ``None`` if it opens a new one.

        Args:
            index: the provider's index, or ``None`` without one.
            id: the provider's id, or ``None`` without one.
            name: the name of the tool, or ``None`` without one.
            has_ended: whether a finish word came before.
        """
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
        result = self._by_index.get(index)
        if result is not None:
            return None if _is_another(result, id, name, has_ended=has_ended) else result
        if name is not None:
            return None  # on an index of its own, an id that is known is one that the server gave twice
        if id is None and opened is not None and opened.wire_index is None:
            return opened  # the index of the open call comes late
        return known

    def open(self, call: Call | None, index: int | None) -> Call:
        """*call*, or a new one, which came with the provider's *index*: the one that a nameless fragment continues."""
        if call is None:
            call = self._calls[len(self._calls)] = Call(len(self._calls))
        self._open = call
        if call.wire_index is None and index is not None:
            call.wire_index = index
            self._by_index[index] = call
        return call

    def identify(self, call: Call, id: str) -> bool:
        """Set the *id* of *call*, and return whether it was free."""
        if id in self._by_id:
            return False
        call.id = id
        self._by_id[id] = call
        return True


def _is_another(call: Call, id: str | None, name: str | None, *, has_ended: bool) -> bool:
    """Whether a fragment on the index of *call* belongs to another one: it is named, and not as that one is.

    The name alone may be the same (two calls of one tool), so a named fragment with another id is another call.
    """
    if name is None or call.name is None:
        has_other_id = id is not None and call.id is not None and id != call.id
        return has_other_id and (has_ended or _is_json("".join(call.arguments)))
    if id is None or call.id is None:
        return name != call.name
    return id != call.id


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
