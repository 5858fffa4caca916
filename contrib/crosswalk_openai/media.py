"""Audio and images that a model made (sections 2, 3 and 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import (
    TAKEN,
    MappingState,
    Segment,
    SegmentType,
    get_array,
    get_integer,
    get_object,
    get_string,
    require_object,
    taken_if,
)

__all__ = ["AUDIO", "IMAGES", "audio_segments", "image_segments"]

_AUDIO_KEYS = ("id", "expires_at", "transcript", "data")


def _says_anything(_: Any, audio: dict[str, Any], __: MappingState) -> bool:
    return any(audio.get(key) for key in _AUDIO_KEYS)


AUDIO = {key: taken_if(_says_anything) for key in _AUDIO_KEYS}
"""What :func:`audio_segments` takes."""


def audio_segments(part: dict[str, Any], place: str) -> Iterator[Segment]:
    """The audio of a message, or the piece of it that a delta brings: each piece is base64 of its own.

    Raises:
        WireTypeError: a leaf of it has another type than the API promises.
    """
    audio = get_object(part, "audio", place) or {}
    spot = f"{place}.audio"
    said = {
        "id": get_string(audio, "id", spot),
        "expires_at": get_integer(audio, "expires_at", spot),
        "transcript": get_string(audio, "transcript", spot),
    }
    data = get_string(audio, "data", spot)
    if data or any(said.values()):
        known = {key: value for key, value in said.items() if value is not None}
        yield Segment(SegmentType.MEDIA, data or "", {"type": "audio", "encoding": "base64", **known})


def _is_image(_: Any, image: dict[str, Any], __: MappingState) -> bool:
    return bool((image.get("image_url") or {}).get("url"))


IMAGES = [
    {
        "type": taken_if(lambda value, image, state: value == "image_url" and _is_image(value, image, state)),
        "image_url": {"url": TAKEN},
    }
]
"""What :func:`image_segments` takes."""


def image_segments(part: dict[str, Any], place: str) -> Iterator[Segment]:
    """The images of a message or delta: an address, or the image itself as a ``data:`` URL.

    Raises:
        WireTypeError: a leaf of one has another type than the API promises.
    """
    for number, item in enumerate(get_array(part, "images", place)):
        spot = f"{place}.images[{number}]"
        image = get_object(require_object(item, spot), "image_url", spot) or {}
        url = get_string(image, "url", f"{spot}.image_url")
        if url:
            yield Segment(SegmentType.MEDIA, url, {"type": "image"})
