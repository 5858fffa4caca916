"""Canonical values as those of the Responses API: citations, counts, and actions of a server's own tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from crosswalk.convert.parts import Piece
from crosswalk.convert.writer import Event, url_citation
from crosswalk.types.json import load_json
from crosswalk.types.usage import UsageInfo, counts_at
from crosswalk.types.values import CitationRef, SegmentType
from crosswalk.wire.responses import (
    ANNOTATIONS,
    COUNTS,
    DETAILS,
    ITEMS,
    REPEATED,
    REQUIRED,
    ItemRole,
    WireItem,
)


def server_item(piece: Piece, new_id: Callable[[str], str]) -> Event | None:
    """Return *piece* as its original item, or as a generated image, or ``None`` if it is neither.

    Args:
        piece: the input or output of a server's tool, or a medium.
        new_id: makes the id of an item of the given kind.
    """
    about: Event = piece.metadata.thawed()
    kind, media_type = about.get("type"), str(about.get("media_type"))
    known = ITEMS.get(kind) if isinstance(kind, str) else None
    if piece.type is SegmentType.MEDIA:
        if known is None:
            if not media_type.startswith("image/") or ":" in piece.text:
                return None
            kind = "image_generation_call"
            known = ITEMS[kind]
            format = media_type.removeprefix("image/")
            about = {"id": new_id(kind), "type": kind, "status": "completed", "output_format": format}
        about = {key: value for key, value in about.items() if key not in ("encoding", "media_type")}
    return None if known is None else _with_asked(about, piece.text, known)


def _with_asked(about: Event, text: str, known: WireItem) -> Event | None:
    """Return *about* with the input or output, or ``None`` if *text* is invalid for the item."""
    if not known.fields:
        return None if text else about
    field, requested = known.fields[0], _json(text) if known.kind is not str and text else text
    if requested is None:
        return None
    is_search = known.role is ItemRole.SERVER and known.kind is dict
    if text and (field in about or (is_search and not (isinstance(requested, dict) and "type" in requested))):
        about["arguments"] = text  # xAI writes its searches like calls of functions
    elif text or (known.kind is str and field not in about):
        about[field] = requested
    return about


def action_item(type: str, arguments: str) -> Event | None:
    """Return the action of an item of *type*, a call of a tool without a name, or ``None`` if it is not an object."""
    requested, fields = _json(arguments), ITEMS[type].fields
    if not isinstance(requested, dict):
        return None
    return requested if requested and requested.keys() <= set(fields) else {fields[0]: requested}


def _json(text: str) -> Any:
    """Return *text* decoded, or ``None`` if it is not JSON."""
    try:
        return load_json(text)
    except orjson.JSONDecodeError:
        return None


def annotation_of(piece: Piece, length: int, *, is_own: bool) -> Event | None:
    """Return *piece*, a citation, as its original annotation, or as that of a page, or ``None`` for other sources.

    Args:
        piece: the citation.
        length: the length of the text so far.
        is_own: whether it was an annotation of a response.
    """
    ref = next((note for note in piece.annotations if isinstance(note, CitationRef)), CitationRef())
    start, end = ref.span or (None, None)
    about: Event = piece.metadata.thawed()
    kind = about.get("type")
    needs = ANNOTATIONS.get(kind, {}) if isinstance(kind, str) else {}
    title = "title" if "title" in needs else "filename"
    payload: Event = {title: piece.text or (None if is_own else ""), "url": ref.source, "file_id": ref.id}
    payload |= {"start_index": start, "end_index": end}
    known = about | {name: value for name, value in payload.items() if value is not None}
    if is_own and isinstance(kind, str):
        return known
    if needs and all(type(known.get(name)) is of for name, of in needs.items()):
        return {"type": kind, **{name: known[name] for name in needs}}
    cited = url_citation(piece, length)
    return None if cited is None else {"type": "url_citation", **cited}


def usage_of(usage: UsageInfo, *, is_own: bool) -> Event:
    """Return *usage*, with 0 for missing counts that the form requires, unless it *is* of the form's *own*."""
    zeros = {} if is_own else {name: 0 for name in COUNTS if getattr(usage, name) is None}
    return counts_at({**COUNTS, **DETAILS}, usage, **zeros)


def repeated(request: Mapping[str, Any]) -> Event:
    """Return the members of *request* that a response repeats, each complete, with the API's defaults."""
    payload = {name: request[name] for name in REPEATED if request.get(name) is not None}
    payload = {**REPEATED.thawed(), **payload}
    payload["tools"] = [_complete(tool, tool["type"]) for tool in payload["tools"]]
    payload["text"] = {**payload["text"], "format": _format(payload["text"].get("format"))}
    if payload["reasoning"] is not None:
        payload["reasoning"] = _complete(payload["reasoning"], "reasoning")
    return payload


def _format(said: Event | None) -> Event:
    return {"type": "text"} if said is None else _complete(said, said["type"])


def _complete(said: Event, kind: str) -> Event:
    """Return *said* with the fields that its *kind* requires and the request has left out."""
    return {
        **said,
        **{name: value for name, value in REQUIRED.get(kind, {}).items() if said.get(name) is None},
    }
