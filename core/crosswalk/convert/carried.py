"""Carries data that a format cannot hold through it: ``convert(…, carry=True)`` and the way back.

A converted answer gets one more member, ``crosswalk``. It holds the difference between the answer as a reader of that format
sees it and the answer that was converted, and so no text twice. A later conversion reads the answer, applies the difference,
and starts from the original. The member also has a digest of the reader's view. If the answer was changed on its way, the
digest differs, the member is not applied, and the report names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.codec.canonical import to_jsonable
from crosswalk.codec.converters import from_json
from crosswalk.errors import CrosswalkError
from crosswalk.formats.writing import WireForm, form_of_body
from crosswalk.types.json import copy_json, dump_json, same_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import RawEvents, Segment, SegmentType

MEMBER: Final = "crosswalk"
"""The name of the member, at the top of a body."""
_VERSION: Final = 1

BodyOf: TypeAlias = Callable[[ChatResponse, WireForm], dict[str, Any]]
"""Writes an answer, without regard to its bytes, in a format."""


def member_of(original: ChatResponse, read: ChatResponse, body_of: BodyOf) -> dict[str, Any]:
    """Return the member for an answer that is *original* and that a reader of the format sees as *read*.

    Args:
        original: the answer that was converted. If it has the bytes of one body, they come back as the same JSON value.
        read: the written answer, read back.
        body_of: see :data:`BodyOf`.
    """
    seen = _seen(read)
    member = {
        "version": _VERSION,
        "reader": read.metadata.provider_id,
        "digest": _digest(seen),
        "response": _difference(seen, to_jsonable(original)),
    }
    body = original.raw_events[0] if len(original.raw_events) == 1 else None
    form = form_of_body(body)
    if form is not None:
        member |= {"form": form.value, "body": _difference(body_of(original, form), body)}
    return member


def reader_of(response: ChatResponse) -> str | None:
    """Return the provider of the reader for the member of *response*, or ``None`` if it carries no answer."""
    reader = _member(response).get("reader")
    return reader if isinstance(reader, str) else None


def without_member(response: ChatResponse) -> ChatResponse:
    """Return *response* as if it carried no answer."""
    extensions = {name: value for name, value in response.metadata.extensions.items() if name != MEMBER}
    return attrs.evolve(
        response,
        metadata=attrs.evolve(response.metadata, extensions=extensions),
        segments=tuple(map(_without_member, response.segments)),
        raw_events=(),
    )


def _without_member(segment: Segment) -> Segment:
    """Return *segment*, of an error, without the carried data in the error's payload."""
    payload = segment.metadata.get("raw") if segment.type is SegmentType.ERROR else None
    if not isinstance(payload, Mapping) or MEMBER not in payload:
        return segment
    raw = {name: value for name, value in payload.items() if name != MEMBER}
    return attrs.evolve(segment, metadata={**segment.metadata, "raw": raw})


def _member(response: ChatResponse) -> Mapping[str, Any]:
    """Return the member of *response*, which for an error is in its payload, or empty if there is none."""
    error = response.error_info
    holders = [response.metadata.extensions.thawed(), None if error is None else error.raw]
    for holder in holders:
        member = holder.get(MEMBER) if isinstance(holder, Mapping) else None
        if isinstance(member, Mapping):
            return member
    return {}


def carried(response: ChatResponse, body_of: BodyOf) -> ChatResponse | None:
    """Return the answer that *response* carries, or ``None`` if it carries none, or was changed since.

    Args:
        response: an answer that was read.
        body_of: as for :func:`member_of`.
    """
    member = _member(response)
    if member.get("version") != _VERSION:
        return None
    seen = _seen(without_member(response))
    if member.get("digest") != _digest(seen):
        return None
    try:
        original = from_json(dump_json(_patched(seen, member["response"])), ChatResponse)
        if "body" in member:
            body = _patched(body_of(original, WireForm.of(member["form"])), member["body"])
            original = attrs.evolve(original, raw_events=RawEvents([dump_json(body)]))
    except (AttributeError, CrosswalkError, LookupError, TypeError, ValueError):
        return None  # the member was not written by Crosswalk
    return original


_MEASURED: Final = ("request_duration_seconds", "time_to_first_token_seconds", "provider_id")
"""Metadata that differ between two readings of the same bytes."""


def _seen(response: ChatResponse) -> dict[str, Any]:
    """Return *response* as plain JSON, without values that differ between two readings of the same bytes."""
    value: dict[str, Any] = to_jsonable(response)
    metadata = value["metadata"]
    marks = metadata.get("provenance", {})
    for name in ("id", "created"):
        if marks.get(name) == Provenance.SYNTHETIC:
            value.pop(name, None)
    value.pop("attempts", None)
    for name in _MEASURED:
        metadata.pop(name, None)
    for name in ("metadata.request_duration", "metadata.time_to_first_token"):
        marks.pop(name, None)
    return value


def _digest(value: Any) -> str:
    return sha256(dump_json(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


# A difference is ``{"value": V}`` for another value, ``{}`` for the same one, ``{"members": …, "removed": …}`` for objects
# and ``{"items": […]}`` for lists. An item is the position of an equal item before, or a difference with the position
# ``at`` of its former item.


def _difference(before: Any, after: Any) -> dict[str, Any]:
    """Return the difference that turns *before* into *after*."""
    if same_json(before, after):
        return {}
    if type(before) is dict and type(after) is dict:
        members = {
            name: _difference(before[name], value) if name in before else {"value": value}
            for name, value in after.items()
            if name not in before or not same_json(before[name], value)
        }
        removed = [name for name in before if name not in after]
        return {"members": members, **({"removed": removed} if removed else {})}
    if type(before) is list and type(after) is list:
        places = {dump_json(item): position for position, item in reversed([*enumerate(before)])}
        return {"items": [_item(before, places, position, value) for position, value in enumerate(after)]}
    return {"value": after}


def _item(before: list[Any], places: dict[bytes, int], place: int, value: Any) -> int | dict[str, Any]:
    """Return the difference that makes *value* from an equal item of *before*, else from the one at its *place*."""
    equal = places.get(dump_json(value))
    if equal is not None:
        return equal
    return {"at": place, **_difference(before[place], value)} if place < len(before) else {"value": value}


def _patched(before: Any, difference: dict[str, Any]) -> Any:
    """Apply *difference* to *before*."""
    if "value" in difference:
        return difference["value"]
    if "items" in difference:
        return [
            copy_json(before[item])
            if type(item) is int
            else _patched(before[item["at"]] if "at" in item else None, item)
            for item in difference["items"]
        ]
    if "members" in difference:
        removed = difference.get("removed", ())
        patched = {name: value for name, value in before.items() if name not in removed}
        for name, inner in difference["members"].items():
            patched[name] = _patched(before.get(name), inner)
        return patched
    return copy_json(before)
