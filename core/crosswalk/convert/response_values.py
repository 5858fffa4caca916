"""Canonical values as those of the Responses API: citations, probabilities, counts, and what a server's own tools did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from crosswalk.convert.parts import Piece
from crosswalk.convert.writer import url_citation
from crosswalk.types.json import load_json
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.segment import CitationRef, SegmentType
from crosswalk.types.usage import UsageInfo
from crosswalk.wire.responses import ITEMS, ItemRole, WireItem

__all__ = ["action_item", "annotation_of", "logprob_of", "server_item", "usage_of"]


def server_item(piece: Piece, new_id: Callable[[str], str]) -> dict[str, Any] | None:
    """*piece* as the item that it was, or as an image that was made; ``None`` where it is neither.

    Args:
        piece: what a server's tool was asked or gave, or a medium.
        new_id: makes the id of an item of the kind that it is given.
    """
    about: dict[str, Any] = piece.metadata.thawed()
    kind, media_type = about.get("type"), about.get("media_type")
    known = ITEMS.get(kind) if isinstance(kind, str) else None
    if known is None:
        if piece.type is not SegmentType.MEDIA or not _is_image(media_type) or ":" in piece.text:
            return None
        kind = "image_generation_call"
        known = ITEMS[kind]
        format = str(media_type).removeprefix("image/")
        about = {"id": new_id(kind), "type": kind, "status": "completed", "output_format": format}
    elif piece.type is SegmentType.MEDIA:
        about = {key: value for key, value in about.items() if key not in ("encoding", "media_type")}
    return _with_asked(about, piece.text, known)


def _with_asked(about: dict[str, Any], text: str, known: WireItem) -> dict[str, Any] | None:
    """*about* with what was asked, or made; ``None`` where *text* is not what it has to be."""
    if not known.fields:
        return None if text else about
    field = known.fields[0]
    asked: Any = text
    if known.kind is not str and text:
        try:
            asked = load_json(text)
        except orjson.JSONDecodeError:
            return None
    is_search = known.role is ItemRole.SERVER and known.kind is dict
    if text and (field in about or (is_search and "type" not in asked)):
        about["arguments"] = text  # xAI writes its searches like calls of functions
    elif text or (known.kind is str and field not in about):
        about[field] = asked
    return about


def action_item(type: str, arguments: str) -> dict[str, Any] | None:
    """What an item of *type*, a call of a tool without a name, asks for; ``None`` where it is no object."""
    try:
        asked = load_json(arguments)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(asked, dict):
        return None
    fields = ITEMS[type].fields
    return asked if asked and asked.keys() <= set(fields) else {fields[0]: asked}


def annotation_of(piece: Piece, length: int, *, is_own: bool) -> dict[str, Any] | None:
    """*piece*, a citation, as the annotation that it was, or as that of a page; ``None`` for other sources.

    Args:
        piece: the citation.
        length: how long the text is so far.
        is_own: whether it was an annotation of a response.
    """
    ref = next((note for note in piece.annotations if isinstance(note, CitationRef)), CitationRef())
    start, end = ref.span or (None, None)
    about: dict[str, Any] = piece.metadata.thawed()
    kind = about.get("type")
    title = "title" if kind == "url_citation" else "filename"
    if is_own and isinstance(kind, str):
        said: dict[str, Any] = {title: piece.text or None, "url": ref.source, "file_id": ref.id}
        said |= {"start_index": start, "end_index": end}
        return about | {name: value for name, value in said.items() if value is not None}
    if kind in ("file_citation", "file_path") and ref.id and type(about.get("index")) is int:
        said = {"type": kind, "file_id": ref.id, "index": about["index"]}
        return said if kind == "file_path" else {**said, "filename": piece.text}
    container = about.get("container_id")
    if kind == "container_file_citation" and ref.id and ref.span and isinstance(container, str):
        place = {"start_index": start, "end_index": end}
        return {"type": kind, "container_id": container, "file_id": ref.id, "filename": piece.text, **place}
    cited = url_citation(piece, length)
    if cited is None:
        return None
    place = {"start_index": cited.start, "end_index": cited.end}
    return {"type": "url_citation", "url": cited.url, "title": cited.title, **place}


def _is_image(media_type: object) -> bool:
    return isinstance(media_type, str) and media_type.startswith("image/")


def logprob_of(token: TokenLogprob) -> dict[str, Any]:
    """*token*, which has a probability; alternatives without one are left out, for none may be made up."""
    tops = [_logprob(top) for top in token.top if top.logprob is not None]
    return {**_logprob(token), "top_logprobs": tops}


def _logprob(token: TokenLogprob) -> dict[str, Any]:
    """A token with its bytes, which the form demands: its text's, where the provider sent none."""
    said = token.token.encode(errors="replace") if token.bytes is None else token.bytes
    return {"token": token.token, "logprob": token.logprob, "bytes": list(said)}


def usage_of(usage: UsageInfo, *, is_own: bool) -> dict[str, Any]:
    """*usage*, with 0 for what the provider did not say and the form demands, unless it *is* of the form's *own*."""
    prompt = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}
    completion = {"reasoning_tokens": usage.reasoning_tokens}
    said: dict[str, Any] = {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    for name, counts in (("input_tokens_details", prompt), ("output_tokens_details", completion)):
        details = {key: count or 0 for key, count in counts.items() if count is not None or not is_own}
        if details:
            said[name] = details
    return said
