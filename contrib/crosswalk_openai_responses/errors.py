"""Its errors: HTTP bodies, ``error`` events in three shapes, and the error of a failed response (section 7)."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.plugins import ErrorInfo, ErrorKind, error_info, refined

__all__ = ["is_error", "responses_error"]

_KINDS: Final = {
    "bio_policy": ErrorKind.CONTENT_FILTER,
    "misalignment_policy_violation": ErrorKind.CONTENT_FILTER,
    "vector_store_timeout": ErrorKind.TIMEOUT,
    "invalid_prompt": ErrorKind.INVALID_REQUEST,
    "data_residency_mismatch": ErrorKind.INVALID_REQUEST,
    "unsupported_image_media_type": ErrorKind.INVALID_REQUEST,
    "failed_to_download_image": ErrorKind.INVALID_REQUEST,
}
"""Codes whose words do not tell their kind."""

_ABOUT_IMAGES: Final = ("invalid_image", "invalid_base64_image", "image_", "empty_image")


def is_error(event: dict[str, Any]) -> bool:
    """Whether *event* is nothing but an error: flat, nested, or bare."""
    if event.get("type") == "error" or event.get("object") == "error":
        return True
    return bool(event.get("error")) and event.get("object") != "response"


def responses_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error says; *status* is ``None`` inside a stream."""
    info = error_info(status, body)
    code = info.code or ""
    kind = _KINDS.get(code)
    if kind is None and info.kind is ErrorKind.UNKNOWN and code.startswith(_ABOUT_IMAGES):
        kind = ErrorKind.INVALID_REQUEST
    return refined(info, kind)
