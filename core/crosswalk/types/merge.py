"""How the extensions of a stream's deltas add up to those of the response."""

from __future__ import annotations

from typing import Any

__all__ = ["copy_json", "is_indexed", "merge"]


def merge(known: dict[str, Any], more: dict[str, Any]) -> None:
    """Add *more* to *known*, in place (design, section 5).

    Objects are merged key by key. Lists whose items are objects with an ``index`` are merged item by
    item, as a body would list them; other lists are joined in order. Of a scalar the last value stays,
    and ``null`` takes no object or list away.
    """
    for key, value in more.items():
        if type(value) is str:  # the commonest: a time that changes with every event
            known[key] = value
            continue
        if key not in known:
            known[key] = copy_json(value)
            continue
        old = known[key]
        if isinstance(old, dict) and isinstance(value, dict):
            merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            _merge_lists(old, value)
        elif value is not None or not isinstance(old, dict | list):
            known[key] = copy_json(value)


def _merge_lists(known: list[Any], more: list[Any]) -> None:
    if not (is_indexed(known) and is_indexed(more)):
        known.extend(copy_json(item) for item in more)
        return
    by_index = {item["index"]: item for item in known}
    for item in more:
        if item["index"] in by_index:
            merge(by_index[item["index"]], item)
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
