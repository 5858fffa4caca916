"""What an event adds to the extensions, as a function of what stands in its gaps.

It is written as JSON with a mark, a text, in the place of each such value (:func:`.marks.mark_of`): a *tree*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crosswalk.mapping.learnt.marks import is_mark, mark_of, number_of, strings_in
from crosswalk.plugin.info import Path
from crosswalk.types.merge import JOIN, Pieces, has_pieces, is_indexed, same_json

__all__ = [
    "changing",
    "filled",
    "gaps_of_tree",
    "has_copies",
    "is_within",
    "leaves_of",
    "put",
    "strings_left",
    "tree_of",
]


def put(value: Any, path: Path, leaf: Any) -> None:
    """Put *leaf* in the place of what stands at *path* in *value*."""
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf


def tree_of(value: Any, marks: Sequence[Any]) -> Any:
    """*value* as a tree, where of *marks* each stands for the gap of its number."""
    for number, mark in enumerate(marks):
        if type(value) is type(mark) and value == mark:
            return mark_of(number)
    if type(value) is dict:
        return {key: tree_of(item, marks) for key, item in value.items()}
    return [tree_of(item, marks) for item in value] if type(value) is list else value


def filled(tree: Any, values: Sequence[Any]) -> Any:
    """*tree* with these *values* in the gaps."""
    if type(tree) is dict:
        return {key: filled(item, values) for key, item in tree.items()}
    if type(tree) is list:
        return [filled(item, values) for item in tree]
    return values[number_of(tree)] if is_mark(tree) else tree


def gaps_of_tree(tree: Any) -> set[int]:
    """The numbers of the gaps in *tree*."""
    return {number_of(text) for text in strings_in(tree, keys=False) if is_mark(text)}


def _says_news(tree: Any, pieces: Pieces) -> bool:
    """Whether what *tree* makes may be news with each event: it has a gap, or a list that arrives in *pieces*."""
    return has_pieces(tree, pieces) or any(map(is_mark, strings_in(tree, keys=False)))


def changing(tree: dict[str, Any], pieces: Pieces) -> dict[str, Any]:
    """What of *tree* may be news with each event; the rest is in the extensions once they have one such event."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        inner = JOIN if pieces is JOIN else pieces.get(key, {})
        if not _says_news(value, inner):
            continue
        if type(value) is dict:
            value = changing(value, inner)
        elif type(value) is list and is_indexed(value):
            value = [{"index": item["index"], **changing(item, inner)} for item in value]
        found[key] = value
    return found


def strings_left(tree: Any) -> tuple[str, ...]:
    """The strings in *tree* that are the same in each such event."""
    return tuple({text for text in strings_in(tree, keys=False) if not is_mark(text)})


def leaves_of(tree: Any, kinds: Sequence[type], *path: str | int) -> Iterable[tuple[Path, bool]]:
    """Where in *tree*, with values of these *kinds* in its gaps, anything but objects stands, and whether that is a list."""
    if type(tree) is dict:
        for key, value in tree.items():
            yield from leaves_of(value, kinds, *path, key)
    elif type(tree) is list and is_indexed(tree):
        for item in tree:
            yield from leaves_of({**item, "index": None}, kinds, *path, item["index"])
    else:
        yield path, type(tree) is list or (is_mark(tree) and kinds[number_of(tree)] is list)


def has_copies(tree: Any, values: Sequence[Any]) -> bool:
    """Whether one of *values* stands in *tree*, not as the value of a gap."""
    if type(tree) is dict or type(tree) is list:
        inside = tree.values() if type(tree) is dict else tree
        return any(same_json(tree, value) for value in values) or any(
            has_copies(item, values) for item in inside
        )
    return any(type(tree) is type(value) and tree == value for value in values)


def is_within(news: Any, tree: Any) -> bool:
    """Whether all of *news* is what *tree* makes."""
    if type(news) is dict and type(tree) is dict:
        return all(key in tree and is_within(value, tree[key]) for key, value in news.items())
    if type(news) is list and type(tree) is list:
        return all(is_within(item, other) for item in news for other in tree if type(item) is dict)
    return type(news) is not dict and type(tree) is not dict
