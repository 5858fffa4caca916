"""Texts that replace an image, a sound or a file if it cannot be shown."""

from __future__ import annotations

from typing import Final

from crosswalk.types.message import AudioPart, ChatMessage, ContentPart, FilePart, ImagePart, TextPart

__all__ = ["has_media", "in_words", "with_words"]

_KINDS: Final = {ImagePart: "an image", AudioPart: "a sound", FilePart: "a file"}


def in_words(noun: str, *about: str | None) -> str:
    """Return the text for *noun*, with the facts *about* it."""
    said = ", ".join(filter(None, about))
    return f"({noun}: {said})" if said else f"({noun})"


def has_media(message: ChatMessage) -> bool:
    """Whether *message* holds more than text."""
    parts = message.content
    return not isinstance(parts, str | None) and not all(isinstance(part, TextPart) for part in parts)


def with_words(message: ChatMessage) -> str:
    """Return the content of *message*, with texts in place of media."""
    parts = message.content
    assert not isinstance(parts, str | None), "the caller has looked"
    return "\n".join(map(_text_of, parts))


def _text_of(part: ContentPart) -> str:
    if isinstance(part, TextPart):
        return part.text
    name = getattr(part, "name", None)
    return in_words(_KINDS[type(part)], name, part.media_type, "you cannot be shown it")
