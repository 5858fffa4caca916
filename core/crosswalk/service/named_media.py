"""A conversation for a model that takes text alone: what it cannot be shown is named."""

from __future__ import annotations

import attrs

from crosswalk.service.request import ChatRequest, Turn
from crosswalk.service.turns import message_of
from crosswalk.types._value import altered
from crosswalk.types.message import AudioPart, ContentPart, FilePart, ImagePart, TextPart
from crosswalk.types.response import ChatResponse

__all__ = ["with_media_named"]

_KINDS = {ImagePart: "an image", AudioPart: "a sound", FilePart: "a file"}


def with_media_named(request: ChatRequest) -> ChatRequest:
    """*request* with texts in the place of images, sounds and files."""
    return altered(request, messages=tuple(map(_with_texts, request.messages)))


def _with_texts(turn: Turn) -> Turn:
    message = message_of(turn)
    parts = message.content
    if parts is None or isinstance(parts, str) or all(isinstance(part, TextPart) for part in parts):
        return turn
    message = attrs.evolve(message, content="\n".join(map(_text_of, parts)))
    return attrs.evolve(turn, message=message) if isinstance(turn, ChatResponse) else message


def _text_of(part: ContentPart) -> str:
    if isinstance(part, TextPart):
        return part.text
    about = filter(None, (getattr(part, "name", None), part.media_type, "you cannot be shown it"))
    return f"({_KINDS[type(part)]}: {', '.join(about)})"
