"""How the extensions of a stream's deltas add up to those of the response."""

from __future__ import annotations

from typing import Any

__all__ = ["Places", "copy_json", "is_indexed", "merge"]


class Places:
    """Where the items of lists stand by their ``index``: found once for each list that grows, not for every event."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[list[Any], dict[int, Any]]] = {}

    def of(self, items: list[Any]) -> dict[int, Any] | None:
        """The items by index, to be kept up to date by who adds one; ``None`` for a list of others than such."""
        found = self._found.get(id(items))
        if found is None:
            if items and not is_indexed(items):
                return None
            # The list itself is kept as well: its identity must not become another one's.
            found = self._found[id(items)] = items, {item["index"]: item for item in items}
        return found[1]

    def forget(self, items: list[Any]) -> None:
        """Forget *items*, which hold something else now."""
        self._found.pop(id(items), None)


def merge(known: dict[str, Any], more: dict[str, Any], places: Places | None = None) -> None:
    """Add *more* to *known*, in place (design, section 5).

    Objects are merged key by key. Lists whose items are objects with an ``index`` are merged item by
    item, as a body would list them; other lists are joined in order. Of a scalar the last value stays,
    and ``null`` takes no object or list away. Who merges again and again into the same passes its *places*.
    """
    places = places or Places()
    for key, value in more.items():
        if type(value) is str:  # the commonest: a time that changes with every event
            known[key] = value
            continue
        if key not in known:
            known[key] = copy_json(value)
            continue
        old = known[key]
        if isinstance(old, dict) and isinstance(value, dict):
            merge(old, value, places)
        elif isinstance(old, list) and isinstance(value, list):
            _merge_lists(old, value, places)
        elif value is not None or not isinstance(old, dict | list):
            known[key] = copy_json(value)


def _merge_lists(known: list[Any], more: list[Any], places: Places) -> None:
    by_index = places.of(known) if is_indexed(more) else None
    if by_index is None:
        known.extend(copy_json(item) for item in more)
        places.forget(known)
        return
    for item in more:
        if item["index"] in by_index:
            merge(by_index[item["index"]], item, places)
        else:
            by_index[item["index"]] = fresh = copy_json(item)
            known.append(fresh)


def is_indexed(items: list[Any]) -> bool:
    """Whether *items* are objects that carry their place in an ``index``, as choices and tool calls do."""
    return bool(items) and all(isinstance(item, dict) and type(item.get("index")) is int for item in items)


def copy_json(value: Any) -> Any:
    """*value* with its own dicts and lists, so that adding to it does not change where it came from."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in value]
    return value
