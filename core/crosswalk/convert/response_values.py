"""Canonical values as those of the Responses API: citations, probabilities, counts, and what a server's own tools did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from crosswalk.convert.parts import Piece
from crosswalk.convert.writer import url_citation
from crosswalk.errors import CrosswalkError
from crosswalk.responses.annotations import (
    Annotation,
    AnnotationContainerFileCitation,
    AnnotationFileCitation,
    AnnotationFilePath,
    AnnotationURLCitation,
)
from crosswalk.responses.content import Logprob, TopLogprob
from crosswalk.responses.items import ResponseOutputItem
from crosswalk.responses.reading import parse_item
from crosswalk.responses.usage import InputTokensDetails, OutputTokensDetails, ResponseUsage
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.segment import CitationRef, SegmentType
from crosswalk.types.usage import UsageInfo

__all__ = ["annotation_of", "logprob_of", "server_item", "usage_of"]


class _ServerItem(NamedTuple):
    """An item of a server's own tool.

    Attributes:
        asked: the field that says what the tool was asked, or what it made; ``""`` where none does.
        is_text: whether that is text, not JSON.
        demanded: what clients count on.
    """

    asked: str
    is_text: bool
    demanded: tuple[str, ...]


_SERVER_ITEMS: Final = {
    "web_search_call": _ServerItem("action", False, ("id", "status", "action")),
    "file_search_call": _ServerItem("queries", False, ("id", "status", "queries")),
    "code_interpreter_call": _ServerItem("code", True, ("id", "status", "container_id")),
    "mcp_call": _ServerItem("arguments", True, ("id", "arguments", "name", "server_label")),
    "mcp_list_tools": _ServerItem("", True, ("id", "server_label", "tools")),
    "image_generation_call": _ServerItem("result", True, ("id", "status")),
}


def server_item(piece: Piece, new_id: Callable[[str], str]) -> ResponseOutputItem | None:
    """*piece* as the item that it was, or as an image that was made; ``None`` where it is neither.

    Args:
        piece: what a server's tool was asked or gave, or a medium.
        new_id: makes the id of an item of the kind that it is given.
    """
    about: dict[str, Any] = piece.metadata.thawed()
    kind, media_type = about.get("type"), about.get("media_type")
    if isinstance(kind, str) and kind in _SERVER_ITEMS:
        about = {key: value for key, value in about.items() if key not in ("encoding", "media_type")}
    elif piece.type is SegmentType.MEDIA and _is_image(media_type) and ":" not in piece.text:
        kind = "image_generation_call"
        about = {
            "id": new_id(kind),
            "type": kind,
            "status": "completed",
            "output_format": str(media_type).removeprefix("image/"),
        }
    else:
        return None
    asked, is_text, demanded = _SERVER_ITEMS[kind]
    try:
        if asked and (piece.text or asked not in about):
            about[asked] = piece.text if is_text else orjson.loads(piece.text)
        if kind == "web_search_call":
            about["action"] = _with_pages_alone(about.get("action"))
        return parse_item(about) if all(about.get(name) is not None for name in demanded) else None
    except (CrosswalkError, orjson.JSONDecodeError):
        return None


def annotation_of(piece: Piece, length: int) -> Annotation | None:
    """*piece*, a citation, as the annotation that it was, or as that of a page; ``None`` for other sources."""
    ref = next((note for note in piece.annotations if isinstance(note, CitationRef)), CitationRef())
    index, container = piece.metadata.get("index"), piece.metadata.get("container_id")
    match piece.metadata.get("type"):
        case "file_citation" if ref.id and type(index) is int:
            return AnnotationFileCitation(file_id=ref.id, filename=piece.text, index=index)
        case "file_path" if ref.id and type(index) is int:
            return AnnotationFilePath(file_id=ref.id, index=index)
        case "container_file_citation" if ref.id and ref.span and isinstance(container, str):
            start, end = ref.span
            return AnnotationContainerFileCitation(
                container_id=container, file_id=ref.id, filename=piece.text, start_index=start, end_index=end
            )
    cited = url_citation(piece, length)
    if cited is None:
        return None
    return AnnotationURLCitation(
        url=cited.url, title=cited.title, start_index=cited.start, end_index=cited.end
    )


def _with_pages_alone(action: Any) -> Any:
    """*action* of a search without sources that are no pages: the server names some, its clients know none."""
    sources = action.get("sources") if isinstance(action, dict) else None
    if not isinstance(sources, list):
        return action
    pages = [
        page for page in sources if isinstance(page, dict) and page.get("type") == "url" and "url" in page
    ]
    return {**action, "sources": pages}


def _is_image(media_type: object) -> bool:
    return isinstance(media_type, str) and media_type.startswith("image/")


def logprob_of(token: TokenLogprob, value: float) -> Logprob:
    """*token*, whose probability is *value*; alternatives without one are left out, for none may be made up."""
    tops = tuple(
        TopLogprob(token=top.token, logprob=top.logprob, bytes=_bytes(top))
        for top in token.top
        if top.logprob is not None
    )
    return Logprob(token=token.token, logprob=value, bytes=_bytes(token), top_logprobs=tops)


def _bytes(token: TokenLogprob) -> tuple[int, ...]:
    """The bytes of a token, which the form demands: its text's, where the provider sent none."""
    return tuple(token.token.encode(errors="replace")) if token.bytes is None else token.bytes


def usage_of(usage: UsageInfo) -> ResponseUsage:
    """*usage*, with 0 for what the provider did not say and the form demands."""
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_details=InputTokensDetails(
            cached_tokens=usage.cached_tokens or 0, cache_write_tokens=usage.cache_write_tokens or 0
        ),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=usage.reasoning_tokens or 0),
    )
