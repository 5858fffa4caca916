"""The differences between two readings of one answer: the original, and the written one, read back.

The report of a conversion is made of these, so it names exactly the losses, whatever their reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from crosswalk.codec.layout import step
from crosswalk.convert.report import Loss, LossReason
from crosswalk.convert.rules import rule_of
from crosswalk.formats.writing import is_same_object
from crosswalk.types.json import same_json
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import Segment, SegmentType, TokenLogprob

_NOT_SAID: Final = (Provenance.SYNTHETIC, Provenance.ABSENT)


def losses(before: ChatResponse, after: ChatResponse) -> tuple[Loss, ...]:
    """Return the fields of *before* that are missing or different in *after*, each once.

    ``raw_events`` are ignored, because each side has its own.
    """
    return _each_once(_losses(before, after), before, after)


def losses_beside(before: ChatResponse, after: ChatResponse) -> tuple[Loss, ...]:
    """Compare two that have the same content, id and time: the measurements and the attempts."""
    return _each_once(_beside(before, after), before, after)


def _each_once(losses: Iterator[Loss], before: ChatResponse, after: ChatResponse) -> tuple[Loss, ...]:
    by_path: dict[str, Loss] = {}
    for loss in losses:
        if loss.path not in by_path:
            rule = rule_of(loss.path, loss.reason, before, after)
            by_path[loss.path] = attrs.evolve(loss, rule=rule)
    return tuple(by_path.values())


def _losses(before: ChatResponse, after: ChatResponse) -> Iterator[Loss]:
    made_up = before.metadata.provenance
    for name in ("id", "created"):
        if made_up.get(name) is not Provenance.SYNTHETIC:
            lost = after.metadata.provenance.get(name) is Provenance.SYNTHETIC
            yield from _between(name, getattr(before, name), None if lost else getattr(after, name))
    yield from _fields("", before, after, "model")
    yield from _answer("", before, after)
    counts, parts = before.usage, before.usage.details
    yield from _fields("usage.", counts, after.usage, *(name for name in _names(counts) if name != "details"))
    yield from _fields("usage.details.", parts, after.usage.details, *_names(parts))
    yield from _fields("", before, after, "content_filter_results")
    others = {alternative.index: alternative for alternative in after.alternatives}
    for position, alternative in enumerate(before.alternatives):
        path = f"alternatives[{position}]"
        other = others.pop(alternative.index, None)
        if other is not None:
            yield from _answer(f"{path}.", alternative, other)
        else:
            yield Loss(path, LossReason.DROPPED)
    numbers = [[answer.index for answer in side.alternatives] for side in (before, after)]
    if [number for number in numbers[0] if number in numbers[1]] != numbers[1]:
        yield Loss("alternatives", LossReason.REORDERED)
    yield from _beside(before, after)


def _beside(before: ChatResponse, after: ChatResponse) -> Iterator[Loss]:
    if before.attempts:
        yield Loss("attempts", LossReason.DROPPED)
    old, new = before.metadata, after.metadata
    yield from _fields("metadata.", old, new, "provider_id", "model_id")
    if old.request_duration and old.request_duration != new.request_duration:
        yield Loss("metadata.request_duration", LossReason.DROPPED)
    yield from _fields("metadata.", old, new, "time_to_first_token")
    yield from _values("metadata.extensions", old.extensions.thawed(), new.extensions.thawed())
    for path, why in old.provenance.items():
        if new.provenance.get(path) is not why:
            reason = LossReason.FILLED_IN if why in _NOT_SAID else LossReason.DROPPED
            yield Loss(f"metadata.provenance{step(path)}", reason)
    for path, why in new.provenance.items():
        if why in _NOT_SAID and path not in {*old.provenance, "metadata.request_duration"}:
            yield Loss(path, LossReason.DROPPED)


def _answer(
    prefix: str, before: ChatResponse | Alternative, after: ChatResponse | Alternative
) -> Iterator[Loss]:
    """Compare one of several answers."""
    yield from _fields(prefix, before, after, "finish_reason", "raw_finish_reason")
    yield from _fields(f"{prefix}message.", before.message, after.message, "content", "name")
    old_calls = before.message.tool_calls or ()
    new_calls = _in_order_of(old_calls, after.message.tool_calls or ())
    if new_calls != (after.message.tool_calls or ()):
        yield Loss(f"{prefix}message.tool_calls", LossReason.REORDERED)
    for number, call in enumerate(old_calls):
        path = f"{prefix}message.tool_calls[{number}]"
        if number >= len(new_calls):
            yield Loss(path, LossReason.DROPPED)
            continue
        yield from _fields(f"{path}.", call, new_calls[number], "id", "name", "kind")
        yield from _arguments(f"{path}.arguments", call.arguments, new_calls[number].arguments)
    if len(new_calls) > len(old_calls):
        yield Loss(f"{prefix}message.tool_calls", LossReason.CHANGED)
    yield from _fields(prefix, before, after, "refusal")
    yield from _segments(f"{prefix}segments", before.segments, after.segments)
    yield from _logprobs(f"{prefix}logprobs", before.logprobs, after.logprobs)


def _in_order_of(old: tuple[ToolCall, ...], new: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return *new* in the order of *old*, if they have the same ids."""
    by_id = {call.id: call for call in new}
    is_same = len(by_id) == len(new) and [*sorted(by_id)] == sorted(call.id for call in old)
    return tuple(by_id[call.id] for call in old) if is_same else new


def _fields(prefix: str, before: Any, after: Any, *names: str) -> Iterator[Loss]:
    for name in names:
        yield from _between(prefix + name, getattr(before, name), getattr(after, name))


def _names(value: Any) -> Iterator[str]:
    """Return the fields of *value*, of an attrs class."""
    return (field.name for field in attrs.fields(type(value)))


def _between(path: str, before: Any, after: Any) -> Iterator[Loss]:
    if before == after and type(before) is type(after):
        return
    if before is None:
        yield Loss(path, LossReason.FILLED_IN)
    else:
        yield Loss(path, LossReason.DROPPED if after is None else LossReason.CHANGED)


def _objects(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Loss]:
    """Return the keys of *before* that are missing or different in *after*. Further keys belong to the form."""
    for key, value in before.items():
        if key not in after:
            yield Loss(f"{path}{step(key)}", LossReason.DROPPED)
        elif not same_json(value, after[key]):
            yield Loss(f"{path}{step(key)}", LossReason.CHANGED)


def _values(path: str, before: Any, after: Any) -> Iterator[Loss]:
    """Compare likewise, down to the leaves."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from _values(f"{path}{step(key)}", value, after[key])
            else:
                yield Loss(f"{path}{step(key)}", LossReason.DROPPED)
    elif isinstance(before, list) and isinstance(after, list) and _are_parts(before) and _are_parts(after):
        old, new = (
            [item.get("index", position) for position, item in enumerate(side)] for side in (before, after)
        )
        if old != new[: len(old)]:
            yield Loss(path, LossReason.CHANGED)
        for position, number in enumerate(old):
            if number in new:
                yield from _values(f"{path}[{position}]", before[position], after[new.index(number)])
            else:
                yield Loss(f"{path}[{position}]", LossReason.DROPPED)
    elif not same_json(before, after):
        yield Loss(path, LossReason.CHANGED)


def _are_parts(values: list[Any]) -> bool:
    """Whether *values* are objects that each have a position, as an ``index`` or in the list."""
    return all(isinstance(item, dict) and type(item.get("index", 0)) is int for item in values)


def _arguments(path: str, before: str, after: str) -> Iterator[Loss]:
    if before == after:
        return
    same = is_same_object(before, after)
    yield Loss(path, LossReason.RESPELLED if same else LossReason.CHANGED)


def _logprobs(
    path: str, before: Sequence[TokenLogprob] | None, after: Sequence[TokenLogprob] | None
) -> Iterator[Loss]:
    if before == after:
        return
    if before and after and len(before) == len(after):
        filled = set()
        for old, new in zip(before, after, strict=True):
            filled |= _filled_in(old, new, "")
        if "" not in filled:
            for location in sorted(filled):
                yield Loss(f"{path}[]{location}", LossReason.FILLED_IN)
            return
    yield Loss(path, LossReason.CHANGED if after else LossReason.DROPPED)


def _filled_in(before: TokenLogprob, after: TokenLogprob, place: str) -> set[str]:
    """Return the paths at which only *after* has bytes, or ``""`` among them if they differ in another way."""
    filled = {f"{place}.bytes"} if before.bytes is None and after.bytes is not None else set()
    has_same_bytes = bool(filled) or before.bytes == after.bytes
    if not has_same_bytes or (before.token, before.logprob) != (after.token, after.logprob):
        return {""}
    if len(before.top) != len(after.top):
        return {""}
    for old, new in zip(before.top, after.top, strict=True):
        filled |= _filled_in(old, new, f"{place}.top[]")
    return filled


# Segments.


def _is_something(segment: Segment) -> bool:
    return bool(segment.content or segment.metadata or segment.annotations)


def _segments(path: str, before: tuple[Segment, ...], after: tuple[Segment, ...]) -> Iterator[Loss]:
    old = [(number, segment) for number, segment in enumerate(before) if _is_something(segment)]
    new = [segment for segment in after if _is_something(segment)]
    pairs = _matched([segment for _, segment in old], new)
    joined = {kind for kind in SegmentType if _is_joined(kind, [segment for _, segment in old], new)}
    for position, (number, segment) in enumerate(old):
        spot = f"{path}[{number}]"
        partner = pairs.get(position)
        if partner is None:
            is_joined = segment.type in joined and bool(segment.content)
            if is_joined and not segment.metadata and not segment.annotations:
                yield Loss(spot, LossReason.JOINED)
            else:
                yield Loss(spot, LossReason.DROPPED)
        else:
            yield from _segment(spot, segment, new[partner])
    order = [pairs[position] for position in sorted(pairs)]
    if order != sorted(order):
        yield Loss(path, LossReason.REORDERED)
    elif any(new[position].type not in joined for position in set(range(len(new))) - set(order)):
        yield Loss(path, LossReason.CHANGED)


def _matched(old: list[Segment], new: list[Segment]) -> dict[int, int]:
    """Match segments of *old* and *new*: the same one, else the same content, the same call, or the next of its type."""
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for key in (_by_identity, _by_content, _by_id, _by_type):
        free: dict[Any, list[int]] = {}
        for position in reversed(range(len(new))):
            if position not in taken and key(new[position]) is not None:
                free.setdefault(key(new[position]), []).append(position)
        for position, segment in enumerate(old):
            result = free.get(key(segment)) if position not in pairs else None
            if result:
                pairs[position] = result.pop()
                taken.add(pairs[position])
    return pairs


def _by_identity(segment: Segment) -> Any:
    about = (str(segment.metadata.get(name)) for name in ("type", "id", "tool_use_id"))
    return segment.type, segment.content, *about


def _by_content(segment: Segment) -> Any:
    return None if segment.type is SegmentType.TOOL_CALL else (segment.type, segment.content)


def _by_id(segment: Segment) -> Any:
    id = segment.metadata.get("id") if segment.type is SegmentType.TOOL_CALL else None
    return None if id is None else str(id)


def _by_type(segment: Segment) -> Any:
    """A unique segment may be matched by its type. Texts that differ are not the same text."""
    return segment.type if segment.type in (SegmentType.CITATION, SegmentType.ERROR) else None


def _is_joined(kind: SegmentType, old: list[Segment], new: list[Segment]) -> bool:
    one, other = ("".join(s.content for s in side if s.type is kind) for side in (old, new))
    return bool(one) and one == other


def _segment(path: str, before: Segment, after: Segment) -> Iterator[Loss]:
    if before.type is SegmentType.TOOL_CALL:
        yield from _arguments(f"{path}.content", before.content, after.content)
    else:
        yield from _fields(f"{path}.", before, after, "content")
    yield from _objects(f"{path}.metadata", before.metadata.thawed(), after.metadata.thawed())
    for number, note in enumerate(before.annotations):
        spot = f"{path}.annotations[{number}]"
        if number >= len(after.annotations) or type(note) is not type(after.annotations[number]):
            yield Loss(spot, LossReason.DROPPED)
        else:
            yield from _fields(f"{spot}.", note, after.annotations[number], *_names(note))
