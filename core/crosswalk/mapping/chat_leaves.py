"""The values in events of OpenAI's chat dialect: texts, arguments and counts, in the forms of servers, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from crosswalk.plugin.state import (
    MappingState,
    accept_count,
    accept_object,
    take_objects,
    take_same,
    take_string,
)
from crosswalk.types.json import dump_json
from crosswalk.types.usage import Provenance, UsageDetails
from crosswalk.wire import chat as wire

SEVERAL_PATHS: Final = tuple(name for name, path in wire.COUNTS.items() if "." in path)
"""The counts with different paths on some servers."""
_WRITTEN: Final = {**wire.COUNTS, **wire.DETAILS}


def take_text(part: dict[str, Any], state: MappingState) -> str | None:
    """Take the text of a message or delta: a string, the text parts of a list, or an object of JSON mode as its JSON.

    The refusal parts of a list become the ``refusal`` of *part*, if it has no refusal.
    A part of another type stays in the list, and the text is noted as unmapped.

    Raises:
        WireTypeError: it is something else.
    """
    content = part.pop("content", None)
    if content is None or type(content) is str:
        return content
    if type(content) is list:
        part["content"] = content
        return _take_parts(part, state)
    if type(content) is dict:
        state.note("message.content", Provenance.DERIVED)
        return dump_json(content).decode()
    part["content"] = content
    return take_string(part, "content")


_TEXT_PARTS = (None, "text", "output_text")


def _take_parts(part: dict[str, Any], state: MappingState) -> str | None:
    """Take the text parts of a list of content. ``None`` without any."""
    items = take_objects(part, "content")
    texts, refusals = [], []
    for item in items:
        kind = item.get("type")
        if (kind is None or type(kind) is str) and kind in _TEXT_PARTS and item.get("text") is not None:
            texts.append(take_string(item, "text"))
            item.pop("type", None)
        elif kind == "refusal" and not part.get("refusal") and type(item.get("refusal")) is str:
            refusals.append(take_string(item, "refusal"))
            item.pop("type", None)
        else:
            state.note_unknown_part()
    if refusals:
        part["refusal"] = "".join(filter(None, refusals))
    if not any(items):
        part.pop("content", None)
    return "".join(text for text in texts if text is not None) if texts else None


def take_arguments(function: dict[str, Any], key: str = "arguments") -> tuple[str | None, bool]:
    """Take argument text, and whether it is whole: some servers send the object itself, then it is all of it.

    Raises:
        WireTypeError: it is something else.
    """
    if type(function.get(key)) is dict:
        return dump_json(function.pop(key)).decode(), True
    return take_string(function, key), False


def accept_details(usage: dict[str, Any], paths: Mapping[str, tuple[str, ...]]) -> UsageDetails:
    """Take the details of a usage object, each at the first of its *paths* that has one."""
    if not usage:
        return UsageDetails.EMPTY
    results = {
        name: count for name, places in paths.items() if (count := accept_count_at(usage, places)) is not None
    }
    return UsageDetails(**results) if results else UsageDetails.EMPTY


def accept_count_at(usage: dict[str, Any], paths: tuple[str, ...]) -> int | None:
    """Take the count at the first of *paths* that has one, and equal counts at the others. ``None`` without any."""
    result: int | None = None
    for path in paths:
        holder, name = _holder(usage, path)
        if name not in holder:
            continue
        if result is None:
            result = accept_count(holder, name)
        else:
            take_same(holder, name, result)
    return result


def take_same_at(container: dict[str, Any], path: str, known: Any) -> None:
    """Take the value at *path* if it repeats *known*, or is ``null``."""
    holder, name = _holder(container, path)
    if name in holder:
        take_same(holder, name, known)


def _holder(container: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return the object that may have the value at *path*, and the key. The object is empty if the path does not exist."""
    groups, name = _split(path)
    holder: dict[str, Any] = container
    for group in groups:
        if group not in holder:
            return {}, name
        holder = accept_object(holder, group) or {}
    return holder, name


@lru_cache(maxsize=256)
def _split(path: str) -> tuple[list[str], str]:
    *groups, name = path.split(".")
    return groups, name


def has_mark(event: dict[str, Any], marks: tuple[str, ...]) -> bool:
    """Return whether *event* has a value at any of the paths *marks*, in which ``[]`` matches any item."""
    for steps, keys in _by_holder(marks):
        results: list[Any] = [event]
        for key, is_list in steps:
            results = [value[key] for value in results if type(value) is dict and key in value]
            if is_list:
                results = [item for value in results if type(value) is list for item in value]
        for value in results:
            if type(value) is dict and not keys.isdisjoint(value):
                return True
    return False


@lru_cache(maxsize=256)
def _by_holder(marks: tuple[str, ...]) -> list[tuple[list[tuple[str, bool]], frozenset[str]]]:
    """The *marks* that are in one object together: the way to it, and their keys."""
    groups: dict[str, list[str]] = {}
    for mark in marks:
        holder, _, key = mark.rpartition(".")
        groups.setdefault(holder, []).append(key)
    return [
        (
            [(name.removesuffix("[]"), name.endswith("[]")) for name in holder.split(".") if name],
            frozenset(keys),
        )
        for holder, keys in groups.items()
    ]


def is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* reports a failed request."""
    return bool(event.get("error")) or event.get("object") == "error"


def spell(
    event: dict[str, Any], paths: Mapping[str, str], reasoning_name: str, *, numbers_calls: bool
) -> None:
    """Move the counts of *event*, a body or chunk in OpenAI's words, to these *paths*.

    Args:
        event: the event, which is changed.
        paths: the server's path of each count.
        reasoning_name: the server's name for reasoning.
        numbers_calls: whether the calls of a whole answer have an ``index`` too.
    """
    for choice in event.get("choices", ()):
        part = choice.get("message") or choice.get("delta") or {}
        if "reasoning_content" in part and reasoning_name not in part:
            part[reasoning_name] = part.pop("reasoning_content")
        if numbers_calls:
            for index, call in enumerate(part.get("tool_calls") or ()):
                call.setdefault("index", index)
        if choice.get("finish_reason") == "function_call" and part.get("tool_calls"):
            part["function_call"] = part.pop("tool_calls")[0]["function"]
    usage = event.get("usage")
    if usage:
        for name, path in paths.items():
            _move(usage, _WRITTEN[name], path)


def _move(usage: dict[str, Any], old: str, new: str) -> None:
    """Move the count at the path *old* of *usage* to the path *new*. An object that becomes empty is removed."""
    group, _, name = old.partition(".")
    if old == new or name not in usage.get(group, ()):
        return
    count = usage[group].pop(name)
    if not usage[group]:
        del usage[group]
    *groups, name = new.split(".")
    for group in groups:
        usage = usage.setdefault(group, {})
    usage[name] = count
